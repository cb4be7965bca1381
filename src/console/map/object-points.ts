/** Where objects are on the map, in arrays that go to the graphics card: five thousand that move cost a millisecond. */
import { MercatorCoordinate } from 'maplibre-gl';
import { type FleetObject, objects, positionOf } from '../state/fleet.js';
import { shortWay, spanOf } from './antimeridian.js';

const NO_DIRECTION = -10;
const MOVING_KMH = 1;
const FIRST_ROOM = 1_024;

export interface View {
  /** The middle of the window, and the size of the world in pixels. */
  readonly x: number;
  readonly y: number;
  readonly worldPx: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

export class ObjectPoints {
  readonly #slots = new Map<string, number>();
  #ids: string[] = [];
  // Double precision: single is three metres wide.
  #world = new Float64Array(FIRST_ROOM * 2);
  #place = new Float32Array(FIRST_ROOM * 2);
  /** Direction, kind and whether it is selected, of each. */
  look = new Float32Array(FIRST_ROOM * 3);

  get count(): number {
    return this.#ids.length;
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  /** Takes the states of these objects over. */
  change(changed: Iterable<string>): void {
    for (const id of changed) this.#put(id);
  }

  /** Shows these objects and no others. */
  reset(shown: Iterable<FleetObject>): void {
    this.#slots.clear();
    this.#ids = [];
    for (const { _id } of shown) this.#put(_id);
  }

  mark(selected: string | null): void {
    for (const [slot, id] of this.#ids.entries()) this.look[slot * 3 + 2] = id === selected ? 1 : 0;
  }

  /** Places in the window, from -1 to 1. */
  project({ x, y, worldPx, widthPx, heightPx }: View): Float32Array {
    const [world, place] = [this.#world, this.#place];
    const [scaleX, scaleY] = [(worldPx * 2) / widthPx, (worldPx * 2) / heightPx];
    for (let index = 0; index < this.count * 2; index += 2) {
      place[index] = shortWay((world[index] as number) - x) * scaleX;
      place[index + 1] = (y - (world[index + 1] as number)) * scaleY;
    }
    return place;
  }

  /** The object nearest to a place of the window, at most so many pixels away. */
  nearest(view: View, at: { x: number; y: number }, withinPx: number): string | null {
    const x = view.x + (at.x - view.widthPx / 2) / view.worldPx;
    const y = view.y + (at.y - view.heightPx / 2) / view.worldPx;
    let [best, least] = [-1, (withinPx / view.worldPx) ** 2];
    for (let slot = 0; slot < this.count; slot++) {
      const [east, south] = [this.#world[slot * 2] as number, this.#world[slot * 2 + 1] as number];
      const away = shortWay(east - x) ** 2 + (south - y) ** 2;
      if (away < least) [best, least] = [slot, away];
    }
    return this.#ids[best] ?? null;
  }

  /** The rectangle in which the objects are, without the one in a hundred that is farthest out. */
  bounds(): [[number, number], [number, number]] | null {
    if (this.count === 0) return null;
    const axis = (offset: number): number[] => {
      const all = this.#ids.map((_, slot) => this.#world[slot * 2 + offset] as number).sort((a, b) => a - b);
      const cut = Math.floor(all.length / 100);
      return all.slice(cut, all.length - cut);
    };
    const [[west, east], [north, south]] = [spanOf(axis(0)), extentOf(axis(1))];
    return [new MercatorCoordinate(west, south), new MercatorCoordinate(east, north)].map((corner) =>
      corner.toLngLat().toArray(),
    ) as [[number, number], [number, number]];
  }

  /** The list of what is shown may be older than an object's state. */
  #put(id: string): void {
    const object = objects.get(id);
    const position = positionOf(object?.state);
    if (object === undefined || position === null) return;
    const slot = this.#slotOf(id);
    const { x, y } = MercatorCoordinate.fromLngLat([position.lon, position.lat]);
    this.#world[slot * 2] = x;
    this.#world[slot * 2 + 1] = y;
    this.look[slot * 3] = directionOf(object);
    this.look[slot * 3 + 1] = object.state?.online ? 1 : 0;
  }

  #slotOf(id: string): number {
    const known = this.#slots.get(id);
    if (known !== undefined) return known;
    const slot = this.#ids.push(id) - 1;
    this.#slots.set(id, slot);
    if ((slot + 1) * 2 > this.#world.length) this.#grow();
    return slot;
  }

  #grow(): void {
    const [world, look] = [this.#world, this.look];
    this.#world = new Float64Array(world.length * 2);
    this.#place = new Float32Array(world.length * 2);
    this.look = new Float32Array(look.length * 2);
    this.#world.set(world);
    this.look.set(look);
  }
}

/** The map ends near the poles. */
const inMap = (y: number): number => Math.min(1, Math.max(0, y));

const extentOf = (places: readonly number[]): [number, number] => [inMap(places[0] ?? 0), inMap(places.at(-1) ?? 0)];

function directionOf({ state }: FleetObject): number {
  const { angle, speed } = (state ?? {}) as { angle?: unknown; speed?: unknown };
  if (typeof angle !== 'number' || (typeof speed === 'number' && speed < MOVING_KMH)) return NO_DIRECTION;
  return (angle * Math.PI) / 180;
}
