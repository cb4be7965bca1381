/**
 * The digest of a shift: what happened to objects in an interval, for who takes over. Alarms, commands with who sent them, notes, and the
 * times in which objects were offline; only what the caller may read.
 */
import { type Caller, mayCall, mayCallObject, scopeOf } from '../core/access.js';
import { streamPackets } from '../packets/packet-stream.js';
import { FieldFinder } from '../platform/mongo/bson/fields.js';
import { numberAt } from '../platform/mongo/bson/numbers.js';
import { BSON_TYPES } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { eachInSlices } from '../platform/slices.js';
import type { ReportInterval } from './interval.js';
import type { ReportObject } from './objects.js';
import type { Column, Reading, ReadingContext, Report, Row } from './report.js';
import { findAlarms, findCommands, findLogins, findNotes, type Happening, type Wanted } from './shift-store.js';

const COLUMNS: readonly Column[] = [
  { name: 'kind', unit: 'text' },
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'text', unit: 'text' },
  { name: 'status', unit: 'text' },
  { name: 'severity', unit: 'text' },
  { name: 'acknowledged', unit: 'time' },
  { name: 'user', unit: 'text' },
  { name: 'login', unit: 'text' },
];

/** What a digest is made of, by the last part of the address that the caller must be permitted to read. */
export const SHIFT_PARTS = ['alarms', 'commands', 'notes', 'packets', 'users'] as const;
type Part = (typeof SHIFT_PARTS)[number];

export function shiftReport(interval: ReportInterval): Report {
  const missing = new Set<Part>();
  return {
    name: 'shift',
    needs: null,
    interval,
    columns: COLUMNS,
    fields: ['online'],
    missing: () => SHIFT_PARTS.filter((part) => missing.has(part)),
    open(_database, caller) {
      for (const part of ['alarms', 'users'] as const) if (!mayCall(caller, 'GET', [part])) missing.add(part);
      const logins = new Logins(caller, !missing.has('users'));
      return (object, context) => beginObject(object, context, { caller, interval, missing, logins });
    },
  };
}

interface Asked {
  readonly caller: Caller;
  readonly interval: ReportInterval;
  /** What was missing of any object; added to. */
  readonly missing: Set<Part>;
  readonly logins: Logins;
}

async function beginObject(
  object: ReportObject,
  { database, countRow }: ReadingContext,
  { caller, interval, missing, logins }: Asked,
): Promise<Reading> {
  const { fromMs, toMs } = interval;
  const wanted: Wanted = { scope: scopeOf(caller), objectId: object.objectId, fromMs, toMs };
  const may = (part: Part): boolean => {
    const isPermitted = mayCallObject(caller, object, 'GET', [part]);
    if (!isPermitted) missing.add(part);
    return isPermitted;
  };
  const found = await Promise.all([
    missing.has('alarms') ? [] : findAlarms(database, wanted),
    may('commands') ? findCommands(database, wanted) : [],
    may('notes') ? findNotes(database, wanted) : [],
  ]);
  const happenings = found.flat();
  for (let row = 0; row < happenings.length; row++) countRow();
  await logins.learn(database, happenings);
  const toRows = (offline: readonly Happening[]): Row[] =>
    [...happenings, ...offline].sort(byTime).map((one) => toRow(one, logins));
  if (!may('packets')) return { finish: () => toRows([]) };
  const presence = new Presence(countRow);
  await readBefore(database, wanted, presence);
  return {
    take: (memory, starts) =>
      eachInSlices(starts, (start) => {
        presence.take(memory, start);
        return null;
      }),
    finish: () => toRows(presence.finish()),
  };
}

const byTime = (one: Happening, other: Happening): number => one.fromMs - other.fromMs;

const toRow = (
  { kind, fromMs, toMs, text, status, severity, acknowledgedMs, userId, login }: Happening,
  logins: Logins,
): Row => ({
  kind,
  from: fromMs,
  to: toMs,
  text,
  status: status ?? null,
  severity: severity ?? null,
  acknowledged: acknowledgedMs ?? null,
  user: userId ?? null,
  login: login ?? logins.of(userId) ?? null,
});

/** The logins of users, as far as the caller may read users; each is read once. */
class Logins {
  readonly #caller: Caller;
  readonly #mayRead: boolean;
  /** By `_id`; null for a user that the caller does not see. */
  readonly #known: Map<string, string | null>;

  constructor(caller: Caller, mayRead: boolean) {
    this.#caller = caller;
    this.#mayRead = mayRead;
    this.#known = new Map([[caller.userId, caller.login]]);
  }

  async learn(database: Database, happenings: readonly Happening[]): Promise<void> {
    if (!this.#mayRead) return;
    const ids = new Set(happenings.flatMap(({ userId }) => userId ?? []));
    const unknown = [...ids].filter((id) => !this.#known.has(id));
    const found = await findLogins(database, scopeOf(this.#caller), unknown);
    for (const id of unknown) this.#known.set(id, found.get(id) ?? null);
  }

  of(userId: string | undefined): string | null {
    return userId === undefined ? null : (this.#known.get(userId) ?? null);
  }
}

/** Takes the last packet before the interval: it says whether the object was offline at its beginning. */
async function readBefore(database: Database, { objectId, fromMs }: Wanted, presence: Presence): Promise<void> {
  const query = { objectIds: [objectId], time: { below: fromMs }, isDescending: true };
  for await (const { memory, starts } of streamPackets(database, { ...query, fields: ['online'], batchPackets: 1 })) {
    if (starts[0] !== undefined) presence.take(memory, starts[0]);
    return;
  }
}

/** When an object was offline: from a packet that says so until the next one that does not. */
class Presence {
  readonly #finder = new FieldFinder(['time', 'online']);
  readonly #countRow: () => void;
  readonly #offline: Happening[] = [];
  #sinceMs: number | null = null;

  constructor(countRow: () => void) {
    this.#countRow = countRow;
  }

  take(memory: Buffer, start: number): void {
    this.#finder.read(memory, start);
    const isOffline = this.#finder.types[1] === BSON_TYPES.BOOLEAN && memory[this.#finder.offsets[1] as number] === 0;
    if (isOffline === (this.#sinceMs !== null)) return;
    const timeMs = numberAt(memory, this.#finder.types[0] as number, this.#finder.offsets[0] as number);
    if (isOffline) {
      this.#countRow();
      this.#sinceMs = timeMs;
    } else this.#end(timeMs);
  }

  finish(): readonly Happening[] {
    this.#end(null);
    return this.#offline;
  }

  #end(toMs: number | null): void {
    if (this.#sinceMs === null) return;
    this.#offline.push({ kind: 'offline', fromMs: this.#sinceMs, toMs, text: '' });
    this.#sinceMs = null;
  }
}
