/** Where objects are on the map, in arrays that go to the graphics card: five thousand that move cost a millisecond. */
import { activityOf } from '../state/activity.js';
import { type OpenAlarm, worstByObject } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { changed, type FleetObject, objects } from '../state/fleet.js';
import { isLost } from '../state/live.js';
import { motionOf } from '../state/motion.js';
import { placeOf } from '../state/places.js';
import { shortWay, spanOf } from './antimeridian.js';
import { toX, toY } from './mercator.js';
import type { Piles, pileUp } from './piles.js';
import { LOOK_SIZE, MARKER_ALARMS, MARKER_KINDS, type MarkerKind, NO_DIRECTION } from './point-shapes.js';

const FIRST_ROOM = 1_024;
/** Objects that send nothing become silent as time passes. */
const LOOKS_MS = 10_000;

export interface View {
  /** The middle of the window, and the size of the world in pixels. */
  readonly x: number;
  readonly y: number;
  readonly worldPx: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

/** A rectangle in parts of the world. */
interface Extent {
  readonly west: number;
  readonly north: number;
  readonly east: number;
  readonly south: number;
}

interface WorldPlace {
  readonly x: number;
  readonly y: number;
}

const toWorld = (view: View, at: { x: number; y: number }): WorldPlace => ({
  x: view.x + (at.x - view.widthPx / 2) / view.worldPx,
  y: view.y + (at.y - view.heightPx / 2) / view.worldPx,
});

export class ObjectPoints {
  readonly #slots = new Map<string, number>();
  #ids: string[] = [];
  #selected: string | null = null;
  #shown: readonly FleetObject[] | null | undefined;
  #isLost = false;
  #worst: ReadonlyMap<string, OpenAlarm> = new Map();
  #looksMs = 0;
  #front: Uint32Array | null = null;
  /** Counts changes of places. */
  #revision = 0;
  #piles: { readonly key: string; readonly piles: Piles } | null = null;
  // Double precision: single is three metres wide.
  #world = new Float64Array(FIRST_ROOM * 2);
  #place = new Float32Array(FIRST_ROOM * 2);
  /** Direction, kind, worst alarm and whether it is selected, of each. */
  look = new Float32Array(FIRST_ROOM * LOOK_SIZE);

  /** It comes with the names. */
  pileUp: typeof pileUp | null = null;

  get count(): number {
    return this.#ids.length;
  }

  has(id: string): boolean {
    return this.#slots.has(id);
  }

  /** Shows these objects and no others, or all of them, as they are now. */
  show(shown: readonly FleetObject[] | null): void {
    if (shown !== null || this.#shown !== shown || [...changed].some((id) => !objects.has(id))) {
      this.#slots.clear();
      this.#ids = [];
      for (const { _id } of shown ?? objects.values()) this.#put(_id);
    } else for (const id of changed) this.#put(id);
    this.#shown = shown;
    changed.clear();
    this.#front = null;
    this.#revision++;
    this.#lookAgain();
  }

  /** What is not told by packets: the connection, alarms, and the time that passes. */
  #lookAgain(): void {
    const isChanged = this.#isLost !== isLost.peek() || this.#worst !== worstByObject.peek();
    if (!isChanged && Math.abs(nowMs.peek() - this.#looksMs) < LOOKS_MS) return;
    this.#isLost = isLost.peek();
    this.#worst = worstByObject.peek();
    this.#looksMs = nowMs.peek();
    for (const [slot, id] of this.#ids.entries()) this.#look(slot, objects.get(id));
  }

  mark(selected: string | null): void {
    const [before, slot] = [this.#selected, selected].map((id) => this.#slots.get(id ?? ''));
    if (before !== undefined) this.look[before * LOOK_SIZE + 3] = 0;
    if (slot !== undefined) this.look[slot * LOOK_SIZE + 3] = 1;
    this.#selected = selected;
    this.#front = null;
  }

  /** The objects that are drawn above others: those with an alarm, and the selected one above all. */
  front(): Uint32Array {
    this.#front ??= this.#findFront();
    return this.#front;
  }

  #findFront(): Uint32Array {
    const alarmOf = (slot: number): number => this.look[slot * LOOK_SIZE + 2] as number;
    const withAlarm = [...this.#worst.keys()]
      .map((id) => this.#slots.get(id))
      .filter((slot) => slot !== undefined)
      .sort((one, other) => alarmOf(one) - alarmOf(other));
    const selected = this.#slots.get(this.#selected ?? '');
    return Uint32Array.from(selected === undefined ? withAlarm : [...withAlarm, selected]);
  }

  /** Places in the window, from -1 to 1. */
  project({ x, y, worldPx, widthPx, heightPx }: View): Float32Array {
    const world = this.#world;
    const place = this.#place;
    const scaleX = (worldPx * 2) / widthPx;
    const scaleY = (worldPx * 2) / heightPx;
    for (let index = 0; index < this.count * 2; index += 2) {
      place[index] = shortWay((world[index] as number) - x) * scaleX;
      place[index + 1] = (y - (world[index + 1] as number)) * scaleY;
    }
    return place;
  }

  /** The object nearest to a place of the window, at most so many pixels away. */
  nearest(view: View, at: { x: number; y: number }, withinPx: number): string | null {
    return this.#ids[this.#nearestSlot(toWorld(view, at), withinPx / view.worldPx)] ?? null;
  }

  /** That object, and those in its pile. In the order in which they came. */
  together(view: View, at: { x: number; y: number }, withinPx: number): string[] {
    const best = this.#nearestSlot(toWorld(view, at), withinPx / view.worldPx);
    if (best < 0) return [];
    const of = this.piles(view)?.of;
    const pile = of?.[best] ?? -1;
    return pile === -1 ? [this.idOf(best)] : this.#ids.filter((_, slot) => of?.[slot] === pile);
  }

  /** Those that cover each other, as soon as that can be said. */
  piles(view: View): Piles | null {
    if (this.pileUp === null) return null;
    const key = [this.#revision, ...Object.values(view)].join();
    if (this.#piles?.key !== key) this.#piles = { key, piles: this.pileUp(this.project(view), this.count, view) };
    return this.#piles.piles;
  }

  idOf(slot: number): string {
    return this.#ids[slot] ?? '';
  }

  /** The place of an object in the window. */
  pixel({ x, y, worldPx, widthPx, heightPx }: View, slot: number): { x: number; y: number } {
    return {
      x: widthPx / 2 + shortWay((this.#world[slot * 2] as number) - x) * worldPx,
      y: heightPx / 2 + ((this.#world[slot * 2 + 1] as number) - y) * worldPx,
    };
  }

  #nearestSlot(place: WorldPlace, within: number): number {
    let best = -1;
    let least = within ** 2;
    for (let slot = 0; slot < this.count; slot++) {
      const away = this.#distance2(slot, place);
      if (away < least) [best, least] = [slot, away];
    }
    return best;
  }

  /** The square of the distance, in parts of the world. */
  #distance2(slot: number, { x, y }: WorldPlace): number {
    const east = this.#world[slot * 2] as number;
    const south = this.#world[slot * 2 + 1] as number;
    return shortWay(east - x) ** 2 + (south - y) ** 2;
  }

  /** The rectangle in which the objects are, without the one in a hundred that is farthest out. */
  extent(): Extent | null {
    if (this.count === 0) return null;
    const axis = (offset: number): Float64Array => {
      const all = Float64Array.from(this.#ids, (_, slot) => this.#world[slot * 2 + offset] as number).sort();
      const cut = Math.floor(all.length / 100);
      return all.slice(cut, all.length - cut);
    };
    const [west, east] = spanOf(axis(0));
    const [north, south] = extentOf(axis(1));
    return { west, north, east, south };
  }

  /** The list of what is shown may be older than an object's state. */
  #put(id: string): void {
    const object = objects.get(id);
    const position = placeOf(object);
    if (object === undefined || position === null) return;
    const slot = this.#slotOf(id);
    this.#world[slot * 2] = toX(position.lon);
    this.#world[slot * 2 + 1] = toY(position.lat);
    this.#look(slot, object);
  }

  #look(slot: number, object: FleetObject | undefined): void {
    if (object === undefined) return;
    const kind = kindOf(object);
    const alarm = this.#worst.get(object._id);
    const at = slot * LOOK_SIZE;
    this.look[at] = kind === 'moving' ? directionOf(object) : NO_DIRECTION;
    this.look[at + 1] = MARKER_KINDS.indexOf(kind);
    this.look[at + 2] = alarm === undefined ? 0 : MARKER_ALARMS.indexOf(alarm.severity);
    this.look[at + 3] = object._id === this.#selected ? 1 : 0;
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
    const world = this.#world;
    const look = this.look;
    this.#world = new Float64Array(world.length * 2);
    this.#place = new Float32Array(world.length * 2);
    this.look = new Float32Array(look.length * 2);
    this.#world.set(world);
    this.look.set(look);
  }
}

/** The map ends near the poles. */
const inMap = (y: number): number => Math.min(1, Math.max(0, y));

const extentOf = (places: Float64Array): [number, number] => [inMap(places[0] ?? 0), inMap(places.at(-1) ?? 0)];

function kindOf(object: FleetObject): MarkerKind {
  const activity = activityOf(object, nowMs.peek());
  if (activity === 'offline') return 'offline';
  if (isLost.peek() || activity === 'never') return 'unknown';
  return activity === 'reporting' ? 'standing' : activity;
}

function directionOf(object: FleetObject): number {
  const course = motionOf(object)?.course ?? Number.NaN;
  return Number.isNaN(course) ? NO_DIRECTION : (course * Math.PI) / 180;
}
