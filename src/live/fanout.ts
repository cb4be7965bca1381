/**
 * From events to those who hear them. What is told within a moment goes to each member in one go, and members who were
 * told the same share the bytes: the cost is the number of writes, not of events.
 */
import { setImmediate as yieldTurn } from 'node:timers/promises';
import type { Batch, Form } from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { encode } from './encoding.js';
import type { LiveEvent } from './events.js';
import { roomsFor } from './rooms.js';

/** One place to which events go. Made by `createMember`; what is in it is the fan-out's. */
export interface Member {
  readonly write: (batch: Batch) => void;
  rooms: ReadonlySet<string>;
  /** What it was told since the last round of writing began; null for nothing. */
  pending: Told | null;
  /** What this round is to write to it. */
  outgoing: Told | null;
  last: LiveEvent | null;
}

/** Where members are who were told nothing yet. */
type Start = Pick<Told, 'next' | 'nextEvent'>;

export interface FanOut {
  /** The member hears what goes to these rooms, and to no others. */
  enter(member: Member, rooms: ReadonlySet<string>): void;
  /** Tells everyone in the event's rooms, each once. */
  tell(event: LiveEvent): void;
  tellOne(member: Member, event: LiveEvent): void;
  /** Writes what the member was told, now. */
  flush(member: Member): void;
  stop(): void;
}

export function createMember(write: (batch: Batch) => void): Member {
  return { write, rooms: new Set(), pending: null, outgoing: null, last: null };
}

export function createFanOut(): FanOut {
  const rooms = new Map<string, Set<Member>>();
  let first: Start = { next: null, nextEvent: null };
  const gatherer = createGatherer(() => {
    first = { next: null, nextEvent: null };
  });
  const tellOne = (member: Member, event: LiveEvent): void => {
    if (member.last === event) return;
    member.last = event;
    const isFirst = member.pending === null;
    member.pending = follow(member.pending, first, event);
    if (isFirst) gatherer.add(member);
  };
  return {
    enter(member, wanted) {
      for (const room of member.rooms) if (!wanted.has(room)) leave(rooms, room, member);
      for (const room of wanted) {
        const members = rooms.get(room);
        if (members === undefined) rooms.set(room, new Set([member]));
        else members.add(member);
      }
      member.rooms = wanted;
    },
    tell(event) {
      if (rooms.size === 0) return;
      for (const room of roomsFor(event)) for (const member of rooms.get(room) ?? []) tellOne(member, event);
    },
    ...{ tellOne, stop: gatherer.stop },
    flush(member) {
      writeOutgoing(member);
      toOutgoing(member);
      writeOutgoing(member);
    },
  };
}

/** An event may be large: who hears nothing more must not keep it. */
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
 * When to write. In the long run, writing takes at most about a third of the time: alone, and where a few follow each other
 * closely, an event goes out at the end of the turn; under load, what has gathered meanwhile goes with it. Nor does it keep
 * everything else waiting while it lasts. What is told during a round is for the next one, for everybody: so all begin it
 * together, and share what they are told.
 */
function createGatherer(onRound: () => void) {
  let waiting: Member[] = [];
  let [isUnderWay, readyMs] = [false, 0];
  let timer: NodeJS.Timeout | undefined;
  const takeAll = (): readonly Member[] => {
    // Flushed meanwhile, one may be here twice.
    const members = waiting.filter(({ pending }) => pending !== null);
    waiting = [];
    for (const member of members) if (member.pending !== null) toOutgoing(member);
    onRound();
    return members;
  };
  const round = async (): Promise<void> => {
    const startMs = performance.now();
    let [turnMs, spentMs] = [startMs, 0];
    for (const member of takeAll()) {
      writeOutgoing(member);
      const passedMs = performance.now() - turnMs;
      if (passedMs < LIMITS.turnMs) continue;
      spentMs += passedMs;
      await yieldTurn();
      turnMs = performance.now();
    }
    const endMs = performance.now();
    // What was not written in the last moments may be made up for.
    const fromMs = Math.max(readyMs, startMs - LIMITS.gatherAheadMs);
    readyMs = Math.min(fromMs + 3 * (spentMs + endMs - turnMs), endMs + LIMITS.gatherMs);
    isUnderWay = false;
    if (waiting.length > 0) schedule();
  };
  const schedule = (): void => {
    if (isUnderWay) return;
    isUnderWay = true;
    const pauseMs = readyMs - performance.now();
    if (pauseMs < 1) setImmediate(() => void round());
    else timer = setTimeout(() => void round(), pauseMs);
  };
  return {
    add(member: Member): void {
      waiting.push(member);
      schedule();
    },
    stop(): void {
      clearTimeout(timer);
      takeAll().forEach(writeOutgoing);
    },
  };
}

function leave(rooms: Map<string, Set<Member>>, room: string, member: Member): void {
  const members = rooms.get(room);
  members?.delete(member);
  if (members?.size === 0) rooms.delete(room);
}

function follow(before: Told | null, first: Start, event: LiveEvent): Told {
  const from = before ?? first;
  if (from.nextEvent === event && from.next !== null) return from.next;
  from.next = new Told(before, event);
  from.nextEvent = event;
  return from.next;
}

/** What somebody was told, as a chain: members who were told the same so far are at the same link. */
class Told implements Batch {
  readonly before: Told | null;
  readonly event: LiveEvent;
  /** The link of those here who were told `nextEvent` as well: no event comes twice, so there is never another. */
  next: Told | null = null;
  nextEvent: LiveEvent | null = null;
  readonly #made: Partial<Record<Form, Buffer>> = {};

  constructor(before: Told | null, event: LiveEvent) {
    this.before = before;
    this.event = event;
  }

  get position(): string {
    return this.event.position;
  }

  pieces(form: Form): { position: string; bytes: Buffer }[] {
    return this.#events().map((each) => ({ position: each.position, bytes: encode(each, form) }));
  }

  bytes(form: Form): Buffer {
    this.#made[form] ??= Buffer.concat(this.#events().map((each) => encode(each, form)));
    return this.#made[form];
  }

  #events(): LiveEvent[] {
    const all: LiveEvent[] = [];
    for (let told: Told | null = this; told !== null; told = told.before) all.push(told.event);
    return all.reverse();
  }
}
