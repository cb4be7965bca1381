/**
 * Distributes events to members of rooms. Events within a short time are written to a member together, and members with the same
 * events share the encoded bytes: the cost depends on the count of writes, not of events.
 */

import type { Encoding, EventBatch } from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import { encode } from './encoding.js';
import type { LiveEvent } from './events.js';
import { createAudienceTest, type Membership, roomsFor } from './rooms.js';

/** A receiver of events. Created by `createMember`; only the fan-out changes its fields. */
export interface Member {
  readonly write: (batch: EventBatch) => void;
  rooms: ReadonlySet<string>;
  permitted: ReadonlySet<string> | null;
  /** Events since the last round of writing began; null for none. */
  pending: EncodedBatch | null;
  /** Events to write in the current round. */
  outgoing: EncodedBatch | null;
  last: LiveEvent | null;
}

/** The start of the chains of batches in a round. */
type Start = Pick<EncodedBatch, 'next' | 'nextEvent'>;

export interface FanOut {
  /** Replaces the rooms of a member. */
  setRooms(member: Member, next: Membership): void;
  /** Publishes to all members of the event's rooms, once to each. */
  publish(event: LiveEvent): void;
  publishTo(member: Member, event: LiveEvent): void;
  /** Writes the events of a member at once. */
  flush(member: Member): void;
  stop(): void;
}

export function createMember(write: (batch: EventBatch) => void): Member {
  return { write, rooms: new Set(), permitted: null, pending: null, outgoing: null, last: null };
}

export function createFanOut(): FanOut {
  const rooms = new Map<string, Set<Member>>();
  let first: Start = { next: null, nextEvent: null };
  const gatherer = createGatherer(() => {
    first = { next: null, nextEvent: null };
  });
  const publishTo = (member: Member, event: LiveEvent): void => {
    if (member.last === event) return;
    member.last = event;
    const isFirst = member.pending === null;
    member.pending = follow(member.pending, first, event);
    if (isFirst) gatherer.add(member);
  };
  return {
    setRooms(member, { rooms: next, permitted }) {
      member.permitted = permitted;
      for (const room of member.rooms) if (!next.has(room)) leave(rooms, room, member);
      for (const room of next) {
        const members = rooms.get(room);
        if (members === undefined) rooms.set(room, new Set([member]));
        else members.add(member);
      }
      member.rooms = next;
    },
    publish(event) {
      if (rooms.size === 0) return;
      let isInAudience: ((member: Member) => boolean) | null = event.limits === null ? null : createAudienceTest(event);
      for (const room of roomsFor(event)) {
        for (const member of rooms.get(room) ?? []) {
          if (member.permitted !== null) isInAudience ??= createAudienceTest(event);
          if (isInAudience === null || isInAudience(member)) publishTo(member, event);
        }
      }
    },
    publishTo,
    stop: gatherer.stop,
    flush(member) {
      writeOutgoing(member);
      toOutgoing(member);
      writeOutgoing(member);
    },
  };
}

/** Also releases the last event, which may be large. */
function toOutgoing(member: Member): void {
  member.outgoing = member.pending;
  member.pending = null;
  member.last = null;
}

function writeOutgoing(member: Member): void {
  const { outgoing } = member;
  member.outgoing = null;
  if (outgoing !== null) member.write(outgoing);
}

/**
 * Schedules rounds of writing, so that writing takes at most about a third of the time. A single event is written at the end of the
 * turn; under load, events are gathered and written together. A round yields to the event loop. Events during a round belong to the
 * next one for all members, so that members begin a round together and share batches.
 */
function createGatherer(onRound: () => void) {
  let waiting: Member[] = [];
  let isUnderWay = false;
  let readyMs = 0;
  let timer: Timer | undefined;
  const takeAll = (): readonly Member[] => {
    // A member that was flushed meanwhile may be listed twice.
    const members = waiting.filter(({ pending }) => pending !== null);
    waiting = [];
    for (const member of members) if (member.pending !== null) toOutgoing(member);
    onRound();
    return members;
  };
  const round = async (): Promise<void> => {
    const startMs = clock.steadyMs();
    let turnMs = startMs;
    let spentMs = 0;
    for (const member of takeAll()) {
      writeOutgoing(member);
      const passedMs = clock.steadyMs() - turnMs;
      if (passedMs < LIMITS.turnMs) continue;
      spentMs += passedMs;
      await clock.nextTurn();
      turnMs = clock.steadyMs();
    }
    const endMs = clock.steadyMs();
    // Unused writing time of the last moments may be used now.
    const fromMs = Math.max(readyMs, startMs - LIMITS.gatherAheadMs);
    readyMs = Math.min(fromMs + 3 * (spentMs + endMs - turnMs), endMs + LIMITS.gatherMs);
    isUnderWay = false;
    if (waiting.length > 0) schedule();
  };
  const schedule = (): void => {
    if (isUnderWay) return;
    isUnderWay = true;
    const pauseMs = readyMs - clock.steadyMs();
    if (pauseMs < 1) clock.setImmediate(() => void round());
    else timer = clock.setTimeout(() => void round(), pauseMs);
  };
  return {
    add(member: Member): void {
      waiting.push(member);
      schedule();
    },
    stop(): void {
      clock.clearTimer(timer);
      takeAll().forEach(writeOutgoing);
    },
  };
}

function leave(rooms: Map<string, Set<Member>>, room: string, member: Member): void {
  const members = rooms.get(room);
  members?.delete(member);
  if (members?.size === 0) rooms.delete(room);
}

function follow(before: EncodedBatch | null, first: Start, event: LiveEvent): EncodedBatch {
  const from = before ?? first;
  if (from.nextEvent === event && from.next !== null) return from.next;
  from.next = new EncodedBatch(before, event);
  from.nextEvent = event;
  return from.next;
}

/** A chain of events. Members with the same events so far share the same link. */
class EncodedBatch implements EventBatch {
  readonly before: EncodedBatch | null;
  readonly event: LiveEvent;
  /** The following link, with `nextEvent`. One link is enough, since members receive events in the same order. */
  next: EncodedBatch | null = null;
  nextEvent: LiveEvent | null = null;
  readonly #made: Partial<Record<Encoding, Buffer>> = {};

  constructor(before: EncodedBatch | null, event: LiveEvent) {
    this.before = before;
    this.event = event;
  }

  get position(): string {
    return this.event.position;
  }

  pieces(encoding: Encoding): { position: string; bytes: Buffer }[] {
    return this.#events().map((each) => ({ position: each.position, bytes: encode(each, encoding) }));
  }

  bytes(encoding: Encoding): Buffer {
    this.#made[encoding] ??= Buffer.concat(this.#events().map((each) => encode(each, encoding)));
    return this.#made[encoding];
  }

  #events(): LiveEvent[] {
    const all: LiveEvent[] = [];
    for (let batch: EncodedBatch | null = this; batch !== null; batch = batch.before) all.push(batch.event);
    return all.reverse();
  }
}
