/**
 * What must be true of commands: their states move forward only, none vanishes, and each goes to its device by the connection that has
 * claimed it, once. They are read from the history of the database, and know nothing of how a command passes on.
 */
import type { Document } from 'mongodb';
import type { CommandDevice } from './command-device.js';
import { toPlain } from './database/documents.js';
import type { Entry } from './database/oplog.js';
import type { SimulatedServer } from './database/server.js';
import { fail, type Sight, seesAny, sightsOf } from './oracles.js';

/** An attempt to send a command, under a name that no other has. */
export interface Sent {
  readonly command: string;
  /** Empty for one that nobody may refuse. */
  readonly userId: string;
  readonly tokenId: string;
  readonly objectId: string;
  readonly ttlMs: number;
  /** Up to where the instance had taken changes in when the request came. */
  applied: string;
  /** Null without an answer. */
  status: number | null;
  /** As the answer names it; empty without one. */
  commandId: string;
}

/** What a user got who waited for the commands of an object. */
export interface Looked extends Pick<Sent, 'userId' | 'tokenId' | 'objectId'> {
  readonly commandIds: readonly string[];
  /** Up to where the instance had taken changes in before it looked at the rights last, and how many entries a majority had at the end. */
  readonly known: string;
  readonly committed: number;
}

export interface Commanded {
  readonly looked: readonly Looked[];
  readonly sent: readonly Sent[];
  readonly devices: readonly CommandDevice[];
  readonly objectIds: readonly string[];
  readonly places: ReadonlyMap<string, number>;
  readonly note: (name: string) => void;
  /** Whether the database failed while an instance delivered: what a device confirmed may not have been stored then. */
  readonly hasFailed: boolean;
}

interface State {
  readonly index: number;
  readonly document: Document;
}

const firstOf = (states: readonly State[]): State => states[0] as State;

const FINAL = ['done', 'failed', 'expired'];
const rankOf = (status: string): number => (FINAL.includes(status) ? 2 : Number(status === 'delivered'));

export function checkCommands(server: SimulatedServer, commanded: Commanded): void {
  const histories = historiesOf(server.oplog.slice(0, server.majority));
  const confirmed = new Map(commanded.devices.flatMap((device) => [...device.confirmed]));
  for (const states of histories.values()) {
    checkStates(states, commanded.note);
    checkConfirmed(states, confirmed);
  }
  checkAttempts(histories, commanded);
  checkRights(server.oplog, histories, commanded);
  checkLooks(server.oplog, commanded);
  for (const device of commanded.devices) checkDevice(device, histories, commanded.hasFailed);
}

/** All states of each command, in their order. */
function historiesOf(oplog: readonly Entry[]): Map<string, State[]> {
  const histories = new Map<string, State[]>();
  for (const [index, { collection, id, after }] of oplog.entries()) {
    if (collection !== 'commands') continue;
    if (after === null) fail(`command ${id} vanished`);
    const states = histories.get(String(id)) ?? [];
    states.push({ index, document: toPlain(after as Document) });
    histories.set(String(id), states);
  }
  return histories;
}

const endOf = ({ status, result, times }: Document): string => JSON.stringify([status, result, times]);

function checkStates(states: readonly State[], note: (name: string) => void): void {
  for (const [nth, { document }] of states.entries()) {
    const before = states[nth - 1]?.document;
    const { command, status, times, expires, _holder: holder } = document;
    if (before === undefined && status !== 'queued') fail(`command ${command} began as ${status}`);
    if (times[status] === undefined) fail(`command ${command} is ${status}, and nobody knows since when`);
    if (before !== undefined && rankOf(status) < rankOf(before.status))
      fail(`command ${command} went back from ${before.status} to ${status}`);
    if (before !== undefined && FINAL.includes(before.status) && endOf(before) !== endOf(document))
      fail(`command ${command} had ended as ${before.status}, and changed to ${status}`);
    if (before?.status === status && before?._holder === holder) {
      if (before?.times.sent !== times.sent) fail(`command ${command} was claimed again by the connection that has it`);
      continue;
    }
    if (status === 'expired' && times.expired < expires) fail(`command ${command} expired before its time`);
    if (status === 'expired') note(`command: expired as ${before?.status}`);
    if (status === 'queued' && before?.status === 'sent') note('command: released');
    if (status !== 'sent') continue;
    if (times.sent >= expires) fail(`command ${command} was sent after its time`);
    if (before?.status === 'sent') note('command: taken over');
  }
}

/** What counts as delivered, or as refused, was confirmed or refused by the device. */
function checkConfirmed(states: readonly State[], confirmed: ReadonlyMap<string, number>): void {
  for (const [nth, { index, document }] of states.entries()) {
    const before = states[nth - 1]?.document;
    if (before?.status !== 'sent') continue;
    const isRefused = document.result?.reasonCode !== undefined && document.status === 'failed';
    if (document.status !== 'delivered' && !isRefused) continue;
    if (index >= (confirmed.get(String(document._id)) ?? Number.POSITIVE_INFINITY)) continue;
    fail(`command ${document.command} is ${document.status}, which its device had not said by then`);
  }
}

/** Every attempt that was acknowledged is stored, and none is stored twice. */
function checkAttempts(histories: ReadonlyMap<string, readonly State[]>, { sent }: Commanded): void {
  const attempts = new Map(sent.map((one) => [one.command, one]));
  const stored = new Map<string, string>();
  for (const [commandId, states] of histories) {
    const { command, object, expires, time, params } = firstOf(states).document;
    const attempt = attempts.get(command) ?? fail(`command ${command} is stored and was never sent`);
    if (stored.has(command)) fail(`command ${command} is stored twice`);
    stored.set(command, commandId);
    if (String(object) !== attempt.objectId) fail(`command ${command} is stored for another object`);
    if (expires - time !== attempt.ttlMs) fail(`command ${command} expires after ${expires - time} ms`);
    if (params.command !== command) fail(`command ${command} lost its parameters`);
    if (attempt.status !== null && ![200, 503].includes(attempt.status))
      fail(`command ${command} was refused with ${attempt.status}, and is stored`);
  }
  for (const { command, status, commandId } of sent) {
    if (status === 200 && stored.get(command) !== commandId)
      fail(`command ${command} was acknowledged and is not stored`);
  }
}

/** Whoever sent a command could see its object at some moment from the last change that the instance knew until it was stored. */
function checkRights(
  oplog: readonly Entry[],
  histories: ReadonlyMap<string, readonly State[]>,
  { sent, objectIds, places }: Commanded,
): void {
  const sights = new Map<string, Map<string, Sight[]>>();
  const attempts = new Map(sent.map((one) => [one.command, one]));
  for (const states of histories.values()) {
    const first = firstOf(states);
    const { command, owner } = first.document;
    const { userId, tokenId, objectId, applied } = attempts.get(command) as Sent;
    if (userId === '') continue;
    if (String(owner) !== userId) fail(`command ${command} belongs to another user`);
    const known = places.get(applied) ?? 0;
    const own = sights.get(userId) ?? sightsOf(oplog, userId, objectIds);
    sights.set(userId, own);
    if (!seesAny(own.get(objectId) ?? [], known, first.index))
      fail(`command ${command} was sent by a user who could not see the object`);
    const removedAt = oplog.findIndex(
      ({ collection, after, id }) => collection === 'tokens' && after === null && String(id) === tokenId,
    );
    if (removedAt !== -1 && removedAt < known) fail(`command ${command} was sent with a token that was removed`);
  }
}

/** Whoever waited for commands may still see their object when some come. */
function checkLooks(oplog: readonly Entry[], { looked, objectIds, places }: Commanded): void {
  for (const { userId, tokenId, objectId, commandIds, known, committed } of looked) {
    if (commandIds.length === 0) continue;
    const from = places.get(known) ?? 0;
    if (!seesAny(sightsOf(oplog, userId, objectIds).get(objectId) ?? [], from, committed))
      fail(`a user got commands of object ${objectId} who could not see it any more`);
    const removedAt = oplog.findIndex(
      ({ collection, after, id }) => collection === 'tokens' && after === null && String(id) === tokenId,
    );
    if (removedAt !== -1 && removedAt < from) fail(`a user got commands with a token that was removed`);
  }
}

/** Whether the connection took the command with this state. */
function isClaim(states: readonly State[], nth: number, holder: string | null): boolean {
  const before = states[nth - 1]?.document;
  const after = states[nth]?.document;
  if (after?.status !== 'sent' || after._holder !== holder) return false;
  return before?.status !== 'sent' || before._holder !== holder;
}

function checkDevice(
  { objectId, isHttp, arrivals, reported }: CommandDevice,
  histories: ReadonlyMap<string, readonly State[]>,
  hasFailed: boolean,
): void {
  const written = new Map<string, number>();
  for (const { commandId, command, holder, status, committed, isConfirmed } of arrivals) {
    const states = histories.get(commandId) ?? fail(`device ${objectId} got command ${command}, which is not stored`);
    const first = firstOf(states).document;
    if (String(first.object) !== objectId) fail(`device ${objectId} got command ${command} of another object`);
    if (first.command !== command) fail(`device ${objectId} got command ${command} as another one`);
    const known = states.findLast(({ index }) => index < committed)?.document.status ?? 'queued';
    if (isHttp && rankOf(known) > 0)
      fail(`device ${objectId} was shown command ${command} as ${status}, which was ${known}`);
    if (isHttp) continue;
    const name = `${commandId} ${holder}`;
    written.set(name, (written.get(name) ?? 0) + 1);
    const claims = states.filter(({ index }, nth) => index < committed && isClaim(states, nth, holder));
    if (claims.length < (written.get(name) ?? 0))
      fail(`command ${command} was written to a connection that had not claimed it by then`);
    if (isConfirmed && !hasFailed) fail(`command ${command} was written again to a connection that had confirmed it`);
  }
  for (const [commandId, { outcome, answer }] of reported) {
    const last = histories.get(commandId)?.at(-1)?.document;
    if (last === undefined || answer === null) continue;
    const isStored = last.status === outcome.status && JSON.stringify(last.result) === JSON.stringify(outcome.result);
    if (answer === 200 && !isStored) fail(`the result of command ${last.command} was acknowledged and is not stored`);
    if (answer === 409 && isStored) fail(`the result of command ${last.command} was refused and is stored`);
    if (answer === 404 && !isHttp) fail(`the result of command ${last.command} was refused as unknown`);
  }
}
