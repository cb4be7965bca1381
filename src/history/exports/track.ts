/** Computes the track of an object from its packets, in bounded memory: a simplified line, its length, stops and trips. */

import { tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Selection } from '../../core/list.js';
import { streamPackets } from '../../packets/packet-stream.js';
import { toPacketQuery } from '../../packets/packets.js';
import { POSITION_FIELDS, PositionReader } from '../../packets/position.js';
import { clock } from '../../platform/clock.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { type Fix, JumpFilter, type Step, toSpeed } from '../jumps.js';
import { TrackLine, type TrackPoint } from '../track-line.js';
import { type Stop, type Trip, TripFinder, type TripRules } from '../trips.js';

export interface TrackQuery extends TripRules {
  readonly selection: Selection;
  readonly points: number;
  /** Whether to return stops and trips. */
  readonly hasStops: boolean;
}

export interface Track {
  readonly pieces: readonly (readonly TrackPoint[])[];
  /** The number of packets with a position, and the times of the first and the last of them. */
  readonly packets: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly distanceM: number;
  readonly movingMs: number;
  readonly maxSpeed: number | null;
  readonly stops: readonly Stop[];
  readonly trips: readonly Trip[];
}

/** How many packets are read between two checks of the clock. */
const CHECKED = 64;

/** Throws 413 for more packets, stops or trips than a track may have; 503 when the database stays unavailable. */
export async function findTrack(database: Database, objectId: string, query: TrackQuery): Promise<Track> {
  const packets = await toPacketQuery(database, objectId, { ...query.selection, after: null });
  const track = new TrackReading(query);
  let read = 0;
  const reading = { ...packets, fields: POSITION_FIELDS, readsAhead: true };
  for await (const { memory, starts } of streamPackets(database, reading)) {
    read += starts.length;
    if (read > LIMITS.trackPackets)
      throw tooLarge(`more than ${LIMITS.trackPackets} packets: ask for a shorter interval`);
    await track.take(memory, starts);
  }
  return track.finish();
}

class TrackReading {
  readonly #query: TrackQuery;
  readonly #position = new PositionReader();
  readonly #line: TrackLine;
  readonly #finder: TripFinder;
  readonly #stops: Stop[] = [];
  readonly #trips: Trip[] = [];
  readonly #jumps: JumpFilter;
  #last: Fix | null = null;
  #packets = 0;
  #fromMs: number | null = null;
  #toMs: number | null = null;
  #distanceM = 0;
  #movingMs = 0;
  #maxSpeed: number | null = null;
  #sinceMs = clock.steadyMs();

  constructor(query: TrackQuery) {
    this.#query = query;
    this.#line = new TrackLine(query.points);
    this.#finder = new TripFinder(query, this.#onStop, this.#onTrip);
    this.#jumps = new JumpFilter(this.#onFix);
  }

  async take(memory: Buffer, starts: readonly number[]): Promise<void> {
    this.#sinceMs = clock.steadyMs();
    for (let index = 0; index < starts.length; index++) {
      if (this.#position.read(memory, starts[index] as number)) this.#add();
      if (this.#line.isFull()) await this.#reduce(this.#line.capacity / 2);
      if (index % CHECKED === 0) await this.#giveTurn();
    }
  }

  async finish(): Promise<Track> {
    this.#jumps.finish();
    this.#finder.finish();
    await this.#reduce(this.#query.points);
    return {
      pieces: this.#line.pieces(),
      packets: this.#packets,
      fromMs: this.#fromMs,
      toMs: this.#toMs,
      distanceM: this.#distanceM,
      movingMs: this.#movingMs,
      maxSpeed: this.#maxSpeed,
      stops: this.#stops,
      trips: this.#trips,
    };
  }

  #add(): void {
    const { longitude, latitude, timeMs, speed } = this.#position;
    if (Number.isNaN(timeMs)) return;
    this.#packets++;
    this.#fromMs ??= timeMs;
    this.#toMs = timeMs;
    this.#jumps.add({ longitude, latitude, timeMs, speed });
  }

  #onFix = (fix: Fix, step: Step): void => {
    const speed = toSpeed(step === 'travel' ? this.#last : null, fix);
    if (speed >= 0) this.#maxSpeed = Math.max(this.#maxSpeed ?? 0, speed);
    this.#last = fix;
    const isConnected = this.#finder.add({ ...fix, speed }, step !== 'travel');
    this.#line.add(fix.longitude, fix.latitude, fix.timeMs, isConnected || step === 'unclear jump');
  };

  async #reduce(points: number): Promise<void> {
    const line = this.#line;
    while (line.length > points) {
      for (const [from, to] of line.blocks()) {
        line.measure(from, to);
        await this.#giveTurn();
      }
      line.keep(line.sizeToKeep(points));
    }
  }

  async #giveTurn(): Promise<void> {
    if (clock.steadyMs() - this.#sinceMs < LIMITS.exportSliceMs) return;
    await clock.nextTurn();
    this.#sinceMs = clock.steadyMs();
  }

  #onStop = (stop: Stop): void => this.#addResult(this.#stops, stop);

  #onTrip = (trip: Trip): void => {
    this.#distanceM += trip.distanceM;
    this.#movingMs += trip.toMs - trip.fromMs;
    this.#addResult(this.#trips, trip);
  };

  #addResult<T>(list: T[], one: T): void {
    if (!this.#query.hasStops) return;
    if (list.length >= LIMITS.trackStops) {
      throw tooLarge(`more than ${LIMITS.trackStops} stops or trips: ask for a shorter interval, or a longer stopTime`);
    }
    list.push(one);
  }
}
