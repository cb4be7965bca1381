/**
 * The simulated database: one replica set with a primary, whose writes a majority has some time later. It knows the commands that we
 * send, and throws for all others, so that nothing is simulated by accident. `differential.test.ts` holds it to the real one.
 * Long because its parts share the state of the set.
 */
import { BSON, type Document, Long, ObjectId, Timestamp } from 'mongodb';
import { areEqual, compareValues, isNumber, keyOf, toNumber } from './compare.js';
import { evaluate } from './expression.js';
import { compareToPlace, type Entry, eventOf, type Place, placeOf, timeToken, tokenOf } from './oplog.js';
import { isDocument, matches, project, sortDocuments, valuesAt } from './query.js';
import { applyUpdate, isStoredWhole, seedOf } from './update.js';

export class CommandError extends Error {
  readonly code: number;
  readonly labels: readonly string[];
  readonly more: Document;

  constructor(code: number, message: string, labels: readonly string[] = [], more: Document = {}) {
    super(message);
    this.code = code;
    this.labels = labels;
    this.more = more;
  }
}

/** A write has to wait for a transaction that has written the same document. */
export class Blocked extends Error {}

/** The reply, and the length of the oplog that a majority must have before it is sent. */
export interface Outcome {
  readonly reply: Document;
  readonly waitsFor: number;
}

interface Row {
  readonly document: Document;
  /** The length of the oplog after its last change. */
  readonly changedAt: number;
  /** Its place among all, which it has since it was inserted. */
  readonly order: number;
}

type Rows = Map<string, Row>;

interface Transaction {
  readonly session: string;
  readonly number: string;
  readonly startedMs: number;
  /** The length of the oplog that it sees. */
  readonly snapshot: number;
  readonly writes: {
    readonly collection: string;
    readonly key: string;
    readonly after: Document | null;
    readonly order: number;
    isReplacement: boolean;
  }[];
}

interface Retryable {
  number: string;
  /** The results of statements that are done. */
  readonly done: Map<number, Document>;
}

/** What a stream wants; all streams with the same filter share it. */
interface StreamMatch {
  readonly filter: Document;
  /** The events of entries that were looked at; null for one that is not wanted. */
  readonly events: WeakMap<Entry, Document | null>;
}

interface StreamCursor {
  readonly id: string;
  readonly match: StreamMatch;
  next: number;
  token: string;
}

interface Context {
  readonly transaction: Transaction | null;
  readonly retryable: Retryable | null;
  readonly session: string;
  readonly number: string;
  /** The length of the oplog that it reads; null for all of it. */
  readonly length: number | null;
}

const OK = { ok: 1 };
const TRANSIENT = 'TransientTransactionError';
const BATCH_MAX = 1_000;
/** `minSnapshotHistoryWindowInSeconds` of the real one. */
const SNAPSHOT_S = 300;
/** `transactionLifetimeLimitSeconds` of the real one. */
const TRANSACTION_MS = 60_000;

export class SimulatedServer {
  readonly databaseName: string;
  /** Ms since the epoch by its clock. */
  readonly #now: () => number;
  /** All entries since the beginning; those before `oldest` are gone for streams. */
  readonly oplog: Entry[] = [];
  oldest = 0;
  /** How many entries a majority has. */
  majority = 0;
  readonly #collections = new Map<string, Rows>();
  readonly #retryables = new Map<string, Retryable>();
  readonly #transactions = new Map<string, Transaction>();
  /** The last transaction that was begun in each session. */
  readonly #begun = new Map<string, string>();
  readonly #committed = new Map<string, { readonly number: string; readonly length: number }>();
  readonly #cursors = new Map<string, StreamCursor>();
  readonly #matches = new Map<string, StreamMatch>();
  #cursorIds = 1_000;
  #orders = 0;
  readonly #highest = new Map<Rows, number>();
  #last = { seconds: 0, increment: 0 };

  constructor(databaseName: string, now: () => number) {
    this.databaseName = databaseName;
    this.#now = now;
  }

  /** Runs a command that has waited for a transaction for so long. Throws `CommandError`, or `Blocked`. */
  execute(command: Document, blockedMs = 0): Outcome {
    const name = nameOf(command);
    const run = this.#commands[name];
    if (run === undefined) throw new Error(`the simulated database does not know the command ${name}`);
    const context = this.#contextOf(command, name);
    this.#isLate = blockedMs > Number(command.maxTimeMS ?? Number.POSITIVE_INFINITY);
    const reply = run(command, context);
    const waits = command.writeConcern?.w === 'majority' && context.transaction === null;
    return { reply: { ...reply, ...OK }, waitsFor: waits ? this.oplog.length : (context.length ?? 0) };
  }

  readonly #commands: Readonly<Record<string, (command: Document, context: Context) => Document>> = {
    ping: () => ({}),
    endSessions: () => ({}),
    createIndexes: () => ({}),
    insert: (command, context) => this.#insert(command, context),
    update: (command, context) => this.#update(command, context),
    delete: (command, context) => this.#delete(command, context),
    findAndModify: (command, context) => this.#findAndModify(command, context),
    find: (command, context) => this.#find(command, context),
    distinct: (command, context) => this.#distinct(command, context),
    aggregate: (command, context) => this.#aggregate(command, context),
    killCursors: (command) => this.#killCursors(command),
    killSessions: (command) => this.#killSessions(command),
    commitTransaction: (command) => this.#commit(command),
    abortTransaction: (command) => this.#abort(command),
  };

  #contextOf(command: Document, name: string): Context {
    const session = command.lsid === undefined ? '' : keyOf(command.lsid.id);
    const number = command.txnNumber === undefined ? '' : String(toNumber(command.txnNumber));
    const none = { session, number, length: this.#lengthAt(command.readConcern) };
    if (number === '' || name === 'commitTransaction' || name === 'abortTransaction') {
      return { ...none, transaction: null, retryable: null };
    }
    if (command.autocommit === false) {
      return { ...none, transaction: this.#transactionOf(command, session, number), retryable: null };
    }
    const known = this.#retryables.get(session);
    if (known !== undefined && Number(known.number) > Number(number)) {
      throw new CommandError(225, 'a later retryable write of this session is done');
    }
    const retryable = known?.number === number ? known : { number, done: new Map<number, Document>() };
    this.#retryables.set(session, retryable);
    return { ...none, transaction: null, retryable };
  }

  #lengthAt(concern: Document | undefined): number | null {
    if (concern?.level !== 'majority' && concern?.level !== 'snapshot') return null;
    const after = concern.afterClusterTime as Timestamp | undefined;
    if (after !== undefined) return Math.max(this.majority, this.#lengthBy(after));
    const at = concern.atClusterTime as Timestamp | undefined;
    if (at === undefined) return this.majority;
    if (at.t < Math.floor(this.#now() / 1_000) - SNAPSHOT_S) throw new CommandError(239, 'the snapshot is too old');
    return this.#lengthBy(at);
  }

  /** How many entries there are up to a time. */
  #lengthBy({ t, i }: Timestamp): number {
    const later = this.oplog.findIndex(({ seconds, increment }) => (seconds - t || increment - i) > 0);
    return later === -1 ? this.oplog.length : later;
  }

  #transactionOf(command: Document, session: string, number: string): Transaction {
    const open = this.#transactions.get(session);
    if (command.startTransaction === true) {
      const last = this.#begun.get(session);
      if (last !== undefined && Number(last) >= Number(number)) {
        throw new CommandError(225, 'a later transaction of this session was begun', [TRANSIENT]);
      }
      this.#begun.set(session, number);
      const transaction = { session, number, startedMs: this.#now(), snapshot: this.oplog.length, writes: [] };
      this.#transactions.set(session, transaction);
      return transaction;
    }
    if (open?.number !== number) throw new CommandError(251, 'the transaction does not exist', [TRANSIENT]);
    return open;
  }

  // --- documents ---

  #rowsOf(collection: string): Rows {
    const rows = this.#collections.get(collection) ?? new Map<string, Row>();
    this.#collections.set(collection, rows);
    return rows;
  }

  /** The documents of a collection as this command sees them; where the filter names keys, those of them only. */
  #documents(collection: string, filter: Document, { transaction, length }: Context): Document[] {
    const keys = keysIn(filter);
    if (keys !== null) return this.#named(collection, keys, { transaction, length });
    if (transaction !== null) return this.#documentsIn(collection, transaction);
    if (length !== null && length < this.oplog.length) return [...this.#at(collection, length).values()];
    return Array.from(this.#rowsOf(collection).values(), ({ document }) => document);
  }

  #named(
    collection: string,
    keys: readonly string[],
    { transaction, length }: Pick<Context, 'transaction' | 'length'>,
  ): Document[] {
    const seen = transaction?.snapshot ?? length ?? this.oplog.length;
    return [...new Set(keys)].flatMap((key) => {
      const written = transaction?.writes.findLast((write) => write.collection === collection && write.key === key);
      const found = written === undefined ? this.#documentAt(collection, key, seen) : written.after;
      return found === null ? [] : [found];
    });
  }

  /** The document as it was when the oplog had this length. */
  #documentAt(collection: string, key: string, length: number): Document | null {
    const row = this.#rowsOf(collection).get(key);
    let document = row?.document ?? null;
    if (row !== undefined && row.changedAt <= length) return document;
    for (let at = this.oplog.length - 1; at >= length; at--) {
      const entry = this.oplog[at] as Entry;
      if (entry.collection === collection && entry.key === key) document = entry.before;
    }
    return document;
  }

  /** The documents as they were when the oplog had this length. */
  #at(collection: string, length: number): Map<string, Document> {
    const documents = new Map(Array.from(this.#rowsOf(collection), ([key, { document }]) => [key, document]));
    for (let at = this.oplog.length - 1; at >= length; at--) {
      const entry = this.oplog[at] as Entry;
      if (entry.collection !== collection) continue;
      if (entry.before === null) documents.delete(entry.key);
      else documents.set(entry.key, entry.before);
    }
    return documents;
  }

  #documentsIn(collection: string, { snapshot, writes }: Transaction): Document[] {
    const documents = this.#at(collection, snapshot);
    for (const write of writes) {
      if (write.collection !== collection) continue;
      if (write.after === null) documents.delete(write.key);
      else documents.set(write.key, write.after);
    }
    return [...documents.values()];
  }

  /** For oracles: all documents that a majority has. */
  committed(collection: string): Document[] {
    return [...this.#at(collection, this.majority).values()];
  }

  #find(command: Document, context: Context): Document {
    const { filter = {}, sort, skip = 0, limit = 0, projection } = command;
    const found = this.#select(this.#documents(command.find, filter, context), filter, sort);
    const page = found.slice(Number(skip), limit ? Number(skip) + Math.abs(Number(limit)) : undefined);
    return this.#cursorOf(
      command.find,
      page.map((document) => project(document, projection, this.#now())),
      command.readConcern?.level === 'snapshot' ? this.#timeAt(context.length ?? 0) : undefined,
    );
  }

  /** The moment at which the oplog had this length. */
  #timeAt(length: number): Timestamp {
    const { seconds, increment } = this.oplog[length - 1] ?? { seconds: Math.floor(this.#now() / 1_000), increment: 0 };
    return new Timestamp({ t: seconds, i: increment });
  }

  /** In the order of their keys where the filter names them, as the index has them. */
  #select(documents: readonly Document[], filter: Document, sort: Document | undefined): Document[] {
    const found = documents.filter((document) => matches(document, filter, this.#now()));
    if (sort !== undefined && Object.keys(sort).length > 0) return sortDocuments(found, sort);
    return '_id' in filter ? sortDocuments(found, { _id: 1 }) : found;
  }

  #cursorOf(collection: string, firstBatch: readonly Document[], atClusterTime?: Timestamp): Document {
    const ns = `${this.databaseName}.${collection}`;
    return { cursor: { firstBatch, id: Long.ZERO, ns, ...(atClusterTime && { atClusterTime }) } };
  }

  #distinct({ distinct, key, query = {} }: Document, context: Context): Document {
    const values: unknown[] = [];
    for (const document of this.#select(this.#documents(distinct, query, context), query, undefined)) {
      for (const value of valuesAt(document, key.split('.')).flat()) {
        if (value !== undefined && !values.some((one) => areEqual(one, value))) values.push(value);
      }
    }
    return { values };
  }

  #aggregate(command: Document, context: Context): Document {
    const [first] = command.pipeline as Document[];
    if (first && '$changeStream' in first) return this.#openStream(command);
    let documents = this.#documents(command.aggregate, {}, context);
    for (const stage of command.pipeline as Document[]) documents = aggregateStage(documents, stage, this.#now());
    return this.#cursorOf(
      command.aggregate,
      documents,
      command.readConcern?.level === 'snapshot' ? this.#timeAt(context.length ?? 0) : undefined,
    );
  }

  // --- writes ---

  #insert({ insert, documents, ordered = true }: Document, context: Context): Document {
    return this.#statements(documents, { ordered, context }, (given: Document) => {
      const document = given._id === undefined ? { _id: new ObjectId(), ...given } : given;
      this.#write(context, { collection: insert, before: null, after: document, isReplacement: false });
      return { n: 1 };
    });
  }

  /** Runs the statements of a write that were not done before, and counts what all of them did. */
  #statements(
    statements: readonly Document[],
    { ordered, context }: { ordered: boolean; context: Context },
    run: (statement: Document, nth: number) => Document,
  ): Document {
    const result: Document = { n: 0 };
    const writeErrors: Document[] = [];
    for (const [nth, statement] of statements.entries()) {
      try {
        this.#nth = nth;
        const done = this.#once(context, nth, () => run(statement, nth));
        result.n += done.n;
        if (done.nModified !== undefined) result.nModified = (result.nModified ?? 0) + done.nModified;
        if (done.upserted !== undefined) {
          result.upserted ??= [];
          result.upserted.push({ index: nth, _id: done.upserted });
        }
      } catch (error) {
        if (!(error instanceof CommandError) || error.labels.includes(TRANSIENT)) throw error;
        writeErrors.push({ index: nth, code: error.code, errmsg: error.message, ...error.more });
        // It is over, whatever failed in it.
        if (context.transaction !== null) this.#transactions.delete(context.session);
        if (ordered || context.transaction !== null) break;
      }
    }
    return writeErrors.length > 0 ? { ...result, writeErrors } : result;
  }

  /** Whether the command has waited for longer than it may. */
  #isLate = false;
  /** The statement that runs. */
  #nth = 0;

  #update({ update, updates, ordered = true }: Document, context: Context): Document {
    return this.#statements(updates, { ordered, context }, (statement) => {
      const found = this.#select(this.#documents(update, statement.q, context), statement.q, statement.sort);
      if (found.length === 0 && statement.upsert === true) {
        const after = this.#upsert(update, { filter: statement.q, change: statement.u }, context);
        return { n: 1, nModified: 0, upserted: after._id };
      }
      const wanted = statement.multi === true ? found : found.slice(0, 1);
      let nModified = 0;
      for (const before of wanted)
        if (this.#change(update, { before, change: statement.u }, context) !== before) nModified++;
      return { n: wanted.length, nModified };
    });
  }

  #upsert(collection: string, { filter, change }: { filter: Document; change: Document }, context: Context): Document {
    const seed = seedOf(filter);
    const base = seed._id === undefined ? { _id: change._id ?? new ObjectId(), ...seed } : seed;
    const after = applyUpdate(base, change, { nowMs: this.#now(), isInsert: true });
    this.#write(context, { collection, before: null, after, isReplacement: false });
    return after;
  }

  /** The document after the update; the same one if nothing changes. */
  #change(collection: string, { before, change }: { before: Document; change: Document }, context: Context): Document {
    const after = applyUpdate(before, change, { nowMs: this.#now(), isInsert: false });
    if (Buffer.compare(BSON.serialize(before), BSON.serialize(after)) === 0) return before;
    const isReplacement = Array.isArray(change)
      ? isStoredWhole(before, after)
      : !Object.keys(change).some((name) => name.startsWith('$'));
    this.#write(context, { collection, before, after, isReplacement });
    return after;
  }

  #delete({ delete: collection, deletes, ordered = true }: Document, context: Context): Document {
    return this.#statements(deletes, { ordered, context }, ({ q, limit }) => {
      const found = this.#select(this.#documents(collection, q, context), q, undefined);
      const wanted = limit === 1 ? found.slice(0, 1) : found;
      for (const before of wanted) this.#write(context, { collection, before, after: null, isReplacement: false });
      return { n: wanted.length };
    });
  }

  #findAndModify(command: Document, context: Context): Document {
    this.#nth = 0;
    return this.#once(context, 0, () => this.#modifyOne(command, context));
  }

  /** Remembers the reply of a retryable statement. One that has changed nothing is run again when it comes again, as the real one does. */
  #once({ retryable }: Context, nth: number, run: () => Document): Document {
    const known = retryable?.done.get(nth);
    if (known !== undefined) return known;
    const { length } = this.oplog;
    const reply = run();
    if (this.oplog.length > length) retryable?.done.set(nth, reply);
    return reply;
  }

  #modifyOne(command: Document, context: Context): Document {
    const { findAndModify: collection, query = {}, sort, fields } = command;
    const [before] = this.#select(this.#documents(collection, query, context), query, sort);
    const shown = (document: Document | undefined): Document | null =>
      document === undefined ? null : project(document, fields, this.#now());
    if (command.remove === true) {
      if (before) this.#write(context, { collection, before, after: null, isReplacement: false });
      return { lastErrorObject: { n: before ? 1 : 0 }, value: shown(before) };
    }
    if (before === undefined && command.upsert !== true) {
      return { lastErrorObject: { n: 0, updatedExisting: false }, value: null };
    }
    if (before === undefined) {
      const after = this.#upsert(collection, { filter: query, change: command.update }, context);
      const lastErrorObject = { n: 1, updatedExisting: false, upserted: after._id };
      return { lastErrorObject, value: command.new === true ? shown(after) : null };
    }
    const after = this.#change(collection, { before, change: command.update }, context);
    return { lastErrorObject: { n: 1, updatedExisting: true }, value: shown(command.new === true ? after : before) };
  }

  #write(
    { transaction, session, number, retryable }: Context,
    write: Pick<Entry, 'before' | 'after' | 'isReplacement'> & { readonly collection: string },
  ): void {
    const { collection, before, after, isReplacement } = write;
    const key = keyOf((after ?? before)?._id);
    // A transaction sees what there was when it began.
    if (before === null && transaction !== null) this.#assertNew(collection, key, { transaction, id: after?._id });
    this.#assertFree(collection, key, transaction);
    if (this.#isLate) throw new CommandError(50, 'operation exceeded time limit');
    if (before === null) this.#assertNew(collection, key, { transaction, id: after?._id });
    const given = { collection, key, after, isReplacement, order: ++this.#orders };
    if (transaction !== null) {
      transaction.writes.push(given);
      return;
    }
    const statement = retryable === null ? null : { session, number, nth: this.#nth };
    this.#append(given, { ...this.#nextTime(), nth: 0, statement, transaction: null });
  }

  #assertFree(collection: string, key: string, transaction: Transaction | null): void {
    for (const [session, { startedMs }] of this.#transactions) {
      if (startedMs + TRANSACTION_MS < this.#now()) this.#transactions.delete(session);
    }
    const isOther = (one: Transaction): boolean =>
      one !== transaction && one.writes.some((write) => write.collection === collection && write.key === key);
    const isHeld = [...this.#transactions.values()].some(isOther);
    if (transaction === null) {
      if (isHeld) throw new Blocked();
      return;
    }
    const changedAt = this.#lastChange(collection, key);
    if (isHeld || changedAt > transaction.snapshot) {
      this.#transactions.delete(transaction.session);
      throw new CommandError(112, 'WriteConflict', [TRANSIENT]);
    }
  }

  /** The length of the oplog after the last change of the document; also of one that was removed. */
  #lastChange(collection: string, key: string): number {
    const row = this.#rowsOf(collection).get(key);
    if (row !== undefined) return row.changedAt;
    for (let at = this.oplog.length - 1; at >= 0; at--) {
      const entry = this.oplog[at] as Entry;
      if (entry.collection === collection && entry.key === key) return at + 1;
    }
    return 0;
  }

  #assertNew(
    collection: string,
    key: string,
    { transaction, id }: { transaction: Transaction | null; id: unknown },
  ): void {
    if (this.#named(collection, [key], { transaction, length: null }).length === 0) return;
    const more = { keyPattern: { _id: 1 }, keyValue: { _id: id } };
    throw new CommandError(11_000, `E11000 duplicate key error collection: ${collection} index: _id_`, [], more);
  }

  #nextTime(): Pick<Entry, 'seconds' | 'increment'> {
    const seconds = Math.max(Math.floor(this.#now() / 1_000), this.#last.seconds);
    this.#last = { seconds, increment: seconds === this.#last.seconds ? this.#last.increment + 1 : 1 };
    return this.#last;
  }

  #append(
    { collection, key, after, order, isReplacement }: Transaction['writes'][number],
    place: Pick<Entry, 'seconds' | 'increment' | 'nth' | 'statement' | 'transaction'>,
  ): void {
    const rows = this.#rowsOf(collection);
    const before = rows.get(key)?.document ?? null;
    if (before === null && after === null) return;
    this.oplog.push({
      ...place,
      wallMs: this.#now(),
      collection,
      key,
      id: (after ?? before)?._id,
      before,
      after,
      isReplacement,
    });
    if (after === null) rows.delete(key);
    else this.#put(rows, key, { document: after, changedAt: this.oplog.length, order: rows.get(key)?.order ?? order });
  }

  #put(rows: Rows, key: string, row: Row): void {
    const highest = this.#highest.get(rows) ?? 0;
    const isLate = !rows.has(key) && row.order < highest;
    rows.set(key, row);
    this.#highest.set(rows, Math.max(highest, row.order));
    if (!isLate) return;
    const sorted = [...rows].sort(([, a], [, b]) => a.order - b.order);
    rows.clear();
    for (const [one, other] of sorted) rows.set(one, other);
  }

  // --- transactions ---

  #commit(command: Document): Document {
    const session = keyOf(command.lsid.id);
    const number = String(command.txnNumber);
    if (this.#committed.get(session)?.number === number) return {};
    const transaction = this.#transactions.get(session);
    if (transaction?.number !== number) throw new CommandError(251, 'the transaction does not exist', [TRANSIENT]);
    this.#transactions.delete(session);
    const time = this.#nextTime();
    for (const [nth, write] of transaction.writes.entries()) {
      this.#append(write, { ...time, nth, statement: null, transaction: number });
    }
    this.#committed.set(session, { number, length: this.oplog.length });
    return {};
  }

  #abort(command: Document): Document {
    const session = keyOf(command.lsid.id);
    const transaction = this.#transactions.get(session);
    if (transaction?.number !== String(command.txnNumber))
      throw new CommandError(251, 'the transaction does not exist');
    this.#transactions.delete(session);
    return {};
  }

  #killSessions({ killSessions }: Document): Document {
    for (const { id } of killSessions as Document[]) this.#transactions.delete(keyOf(id));
    return {};
  }

  // --- change streams ---

  #openStream({ pipeline }: Document): Document {
    const [{ $changeStream: asked }, { $match }] = pipeline as [Document, Document];
    const place = this.#startOf(asked);
    const cursor = { id: String(++this.#cursorIds), match: this.#matchFor($match), ...place };
    this.#cursors.set(cursor.id, cursor);
    return {
      cursor: {
        firstBatch: [],
        id: Long.fromString(cursor.id),
        ns: `${this.databaseName}.$cmd.aggregate`,
        postBatchResumeToken: { _data: cursor.token },
      },
    };
  }

  #startOf({ resumeAfter, startAtOperationTime }: Document): Pick<StreamCursor, 'next' | 'token'> {
    if (startAtOperationTime instanceof Timestamp) {
      const { t: seconds, i: increment } = startAtOperationTime;
      const next = this.#after({ seconds, increment, nth: null });
      if (next <= this.oldest && this.oldest > 0) throw historyLost();
      return { next, token: timeToken({ seconds, increment }) };
    }
    if (resumeAfter === undefined) {
      const last = this.oplog[this.majority - 1];
      const seconds = last?.seconds ?? Math.floor(this.#now() / 1_000);
      return { next: this.majority, token: timeToken({ seconds, increment: (last?.increment ?? 0) + 1 }) };
    }
    const token = String(resumeAfter._data);
    const place = placeOf(token);
    if (place === null) throw new CommandError(260, 'the resume token is invalid');
    const next = this.#after(place);
    const reached = this.oplog[next - 1];
    const isKnown = place.nth === null || (reached !== undefined && tokenOf(reached) === token);
    if (next < this.oldest || (next === this.oldest && this.oldest > 0 && !isKnown)) throw historyLost();
    if (!isKnown) throw new CommandError(280, 'cannot resume stream; the resume token was not found');
    return { next, token };
  }

  /** The index of the first entry after the place. */
  #after(place: Place): number {
    let low = 0;
    let high = this.oplog.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareToPlace(this.oplog[middle] as Entry, place) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The next batch of a stream; null while there is nothing to tell. */
  readStream(command: Document, mayBeEmpty: boolean): Document | null {
    const cursor = this.#cursors.get(String(command.getMore));
    if (cursor === undefined) throw new CommandError(43, `cursor id ${command.getMore} not found`);
    if (cursor.next < this.oldest) {
      this.#cursors.delete(cursor.id);
      throw new CommandError(136, 'CollectionScan died due to position in capped collection being deleted');
    }
    const batchSize = Number(command.batchSize ?? BATCH_MAX);
    const events: Document[] = [];
    while (cursor.next < this.majority && events.length < batchSize) {
      const entry = this.oplog[cursor.next++] as Entry;
      const event = this.#eventFor(entry, cursor.match);
      if (event !== null) events.push(event);
      cursor.token =
        event !== null ? tokenOf(entry) : timeToken({ seconds: entry.seconds, increment: entry.increment + 1 });
    }
    if (events.length === 0 && !mayBeEmpty) return null;
    return {
      cursor: {
        nextBatch: events,
        id: Long.fromString(cursor.id),
        ns: `${this.databaseName}.$cmd.aggregate`,
        postBatchResumeToken: { _data: cursor.token },
      },
      ...OK,
    };
  }

  #matchFor(filter: Document): StreamMatch {
    const name = BSON.EJSON.stringify(filter);
    const match = this.#matches.get(name) ?? { filter, events: new WeakMap() };
    this.#matches.set(name, match);
    return match;
  }

  #eventFor(entry: Entry, { filter, events }: StreamMatch): Document | null {
    const known = events.get(entry);
    if (known !== undefined) return known;
    const event = this.#isOther(entry, filter) ? null : eventOf(entry, this.databaseName);
    const wanted = event !== null && matches(event, filter) ? event : null;
    events.set(entry, wanted);
    return wanted;
  }

  /** Whether it is of no collection that the stream names: most entries are. */
  #isOther({ collection }: Entry, match: Document): boolean {
    const named = match['ns.coll'];
    return collection === null || (Array.isArray(named?.$in) && !named.$in.includes(collection));
  }

  #killCursors({ cursors }: Document): Document {
    for (const id of cursors as unknown[]) this.#cursors.delete(String(id));
    return { cursorsKilled: cursors };
  }

  // --- faults ---

  /** Another primary, which has only this many entries: what no majority has may be lost. */
  elect(kept: number): readonly Entry[] {
    let first = Math.max(kept, this.majority);
    // A transaction is one entry of a real oplog.
    while (first > this.majority && this.oplog[first]?.nth) first--;
    const lost = this.oplog.splice(first);
    for (const entry of [...lost].reverse()) this.#undo(entry);
    this.#transactions.clear();
    this.#cursors.clear();
    return lost;
  }

  #undo({ collection, key, before, statement }: Entry): void {
    if (collection === null) return;
    const rows = this.#rowsOf(collection);
    if (before === null) rows.delete(key);
    else this.#put(rows, key, { document: before, changedAt: 0, order: rows.get(key)?.order ?? ++this.#orders });
    const retryable = statement && this.#retryables.get(statement.session);
    if (retryable?.number === statement?.number) retryable?.done.delete(statement?.nth ?? 0);
    for (const [session, { length }] of this.#committed) {
      if (length > this.oplog.length) this.#committed.delete(session);
    }
  }

  /** Every cursor is gone, as after a restart. */
  dropCursors(): void {
    this.#cursors.clear();
  }

  /** The oplog loses everything before its last entries that a majority has. */
  shortenOplog(kept: number): void {
    this.oldest = Math.max(this.oldest, this.majority - kept);
  }

  /** An entry without a change, as a primary writes every few seconds. */
  noteTime(): void {
    const place = { ...this.#nextTime(), nth: 0, statement: null, transaction: null };
    const nothing = { collection: null, key: '', id: null, before: null, after: null, isReplacement: false };
    this.oplog.push({ ...place, ...nothing, wallMs: this.#now() });
  }
}

/** The first of its fields. */
function nameOf(command: Document): string {
  for (const name in command) return name;
  return '';
}

const historyLost = (): CommandError =>
  new CommandError(286, 'Resume of change stream was not possible, as the resume point may no longer be in the oplog.');

/** The keys of documents that the filter names; null where it names none. */
function keysIn({ _id: wanted }: Document): string[] | null {
  if (wanted === undefined || wanted === null || wanted instanceof RegExp) return null;
  if (!isDocument(wanted) || !Object.keys(wanted).some((name) => name.startsWith('$'))) return [keyOf(wanted)];
  return Array.isArray(wanted.$in) ? wanted.$in.map(keyOf) : null;
}

function aggregateStage(documents: readonly Document[], stage: Document, nowMs: number): Document[] {
  const [name = ''] = Object.keys(stage);
  const argument = stage[name];
  if (name === '$match') return documents.filter((document) => matches(document, argument, nowMs));
  if (name === '$sort') return sortDocuments(documents, argument);
  if (name === '$limit') return documents.slice(0, Number(argument));
  if (name === '$skip') return documents.slice(Number(argument));
  if (name === '$project') return documents.map((document) => project(document, argument, nowMs));
  if (name === '$group') return group(documents, argument, nowMs);
  if (name === '$replaceWith') return documents.map((root) => evaluate(argument, { root, nowMs }) as Document);
  throw new Error(`the simulated database does not know the stage ${name}`);
}

/** What is missing does not count. */
function extreme(operator: '$min' | '$max', one: unknown, other: unknown): unknown {
  if (other === undefined || other === null) return one ?? null;
  if (one === undefined || one === null) return other;
  const order = compareValues(one, other);
  return (operator === '$min' ? order <= 0 : order >= 0) ? one : other;
}

/** Groups by `$sum`, `$min` and `$max`, and by `$first` and `$last` of the documents in the order in which they come. */
function group(documents: readonly Document[], { _id, ...wanted }: Document, nowMs: number): Document[] {
  const groups = new Map<string, Document>();
  for (const root of documents) {
    const key = evaluate(_id, { root, nowMs }) ?? null;
    const found = groups.get(keyOf(key)) ?? { _id: key };
    groups.set(keyOf(key), found);
    for (const [name, accumulator] of Object.entries(wanted)) {
      const [operator = ''] = Object.keys(accumulator);
      const value = evaluate(accumulator[operator], { root, nowMs });
      if (operator === '$last') found[name] = value ?? null;
      else if (operator === '$first') found[name] = name in found ? found[name] : (value ?? null);
      else if (operator === '$sum') found[name] = (found[name] ?? 0) + (isNumber(value) ? toNumber(value) : 0);
      else if (operator === '$min' || operator === '$max') found[name] = extreme(operator, found[name], value);
      else throw new Error(`the simulated database does not group by ${operator}`);
    }
  }
  return [...groups.values()];
}
