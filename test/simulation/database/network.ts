/**
 * The way from a process to the simulated database and back: it takes time, and it loses, delays and repeats what it carries. It
 * also keeps replies back until a majority has the write, and until a stream has something to tell.
 */
import { type Document, MongoNetworkError } from 'mongodb';
import { between, chance } from '../random.js';
import type { Incarnation, VirtualTime } from '../virtual-time.js';
import { keyOf } from './compare.js';
import { Blocked, CommandError, SimulatedServer } from './server.js';

/** Which share of commands suffers what. */
export interface Faults {
  requestLost: number;
  replyLost: number;
  late: number;
  twice: number;
}

export const NO_FAULTS: Faults = { requestLost: 0, replyLost: 0, late: 0, twice: 0 };

const SELECTION_MS = 5_000;
/** As long as a real election takes at most, with its settings. */
const ELECTION_MS = 3_000;
const INTERRUPTED = 11_602;
/** How often a write looks whether the transaction that it waits for is over. */
const BLOCKED_MAX_MS = 20;

/** What a command is for: a fault may be meant for the next one of its kind. */
export const COMMAND_KINDS = ['begin', 'commit', 'write', 'read'] as const;
export type CommandKind = (typeof COMMAND_KINDS)[number];

function kindOf(command: Document): CommandKind | null {
  if (command.autocommit === false)
    return command.startTransaction ? 'begin' : command.commitTransaction ? 'commit' : null;
  if (command.insert ?? command.update ?? command.findAndModify ?? command.delete) return 'write';
  return (command.find ?? command.distinct ?? command.aggregate) && command.aggregate !== 1 ? 'read' : null;
}

/** A fault at one command of a process: before the command leaves, or after the database has executed it, and before its answer. */
export interface Strike {
  readonly owner: Incarnation;
  readonly at: CommandKind;
  readonly moment: 'before' | 'after';
  /** How many commands of the kind go by before it. */
  left: number;
  /** How many of them it hits. */
  times: number;
  /** What happens then. */
  readonly act: () => void;
  /** Whether the request, or the answer, is lost. */
  readonly isLost: boolean;
  /** How much later the request or the answer arrives. */
  readonly lateMs: number;
}

interface Sent {
  readonly command: Document;
  readonly owner: Incarnation | null;
  readonly term: number;
  readonly resolve: (reply: Document) => void;
  readonly reject: (error: unknown) => void;
  readonly isReplyLost: boolean;
  /** How much later the answer comes. */
  readonly lateMs?: number;
  /** For how long it has waited for a transaction. */
  readonly blockedMs: number;
}

export class SimulatedDatabase {
  readonly server: SimulatedServer;
  faults: Faults = { ...NO_FAULTS };
  /** What happened, for the census. */
  readonly note: (name: string) => void;
  readonly #time: VirtualTime;
  #term = 1;
  #hasPrimary = true;
  /** Whether no write reaches a majority. */
  #isAlone = false;
  #replicatedAtMs = 0;
  /** Writes whose replies wait for a majority. */
  #waiting: (Sent & { readonly length: number; readonly reply: Document })[] = [];
  /** Reads of streams that wait for changes. */
  #reading: (Sent & { readonly untilMs: number })[] = [];
  readonly #looked = new Set<string>();
  /** Faults that wait for their command. */
  #strikes: Strike[] = [];
  #selecting: { readonly owner: Incarnation | null; readonly resolve: () => void }[] = [];

  constructor(time: VirtualTime, databaseName: string, note: (name: string) => void) {
    this.#time = time;
    this.note = note;
    this.server = new SimulatedServer(databaseName, () => Math.floor(time.nowMs));
  }

  /** Resolves once there is a primary; false if there is none for too long. */
  selectPrimary(): Promise<boolean> {
    if (this.#hasPrimary) return Promise.resolve(true);
    const owner = this.#time.current;
    return new Promise((resolve) => {
      const cancel = this.#time.after(SELECTION_MS, owner, () => resolve(false));
      const found = (): void => {
        cancel();
        resolve(true);
      };
      this.#selecting.push({ owner, resolve: found });
    });
  }

  /** Sends a command in the name of whoever runs. */
  send(command: Document): Promise<Document> {
    const owner = this.#time.current;
    const { random } = this.#time;
    const isRequestLost = chance(random, this.faults.requestLost);
    const isReplyLost = chance(random, this.faults.replyLost);
    const isRetryable = command.txnNumber !== undefined && command.autocommit === undefined;
    const isTwice = isRetryable && chance(random, this.faults.twice);
    const ms = this.#latencyMs();
    const strike = this.#takeStrike(owner, command);
    return new Promise((resolve, reject) => {
      const sent: Sent = { command, owner, term: this.#term, resolve, reject, isReplyLost, blockedMs: 0 };
      if (strike !== null) this.#suffer(strike, sent, ms);
      else if (isRequestLost) this.#fail(sent, new MongoNetworkError('the request was lost'), ms);
      else this.#time.after(ms, null, () => this.#arrive(sent));
      if (isTwice) {
        const nothing = (): void => undefined;
        this.#time.after(ms + this.#latencyMs(), null, () =>
          this.#arrive({ ...sent, resolve: nothing, reject: nothing }),
        );
      }
    });
  }

  #takeStrike(owner: Incarnation | null, command: Document): Strike | null {
    if (this.#strikes.length === 0) return null;
    const kind = kindOf(command);
    const found = this.#strikes.find((one) => one.owner === owner && one.at === kind);
    if (found === undefined || found.left-- > 0) return null;
    found.left = 0;
    if (--found.times === 0) this.#strikes = this.#strikes.filter((one) => one !== found);
    return found;
  }

  #suffer({ moment, act, isLost, lateMs }: Strike, sent: Sent, ms: number): void {
    const { owner } = sent;
    if (moment === 'before') {
      act();
      if (isLost) {
        this.#fail(sent, new MongoNetworkError('the request was lost'), ms);
        return;
      }
      // In the name of the process: it sends nothing while it is frozen.
      this.#time.after(0, owner, () => this.#time.after(ms + lateMs, null, () => this.#arrive(sent)));
    } else {
      this.#time.after(ms, null, () => {
        this.#arrive({ ...sent, isReplyLost: isLost, lateMs });
        act();
      });
    }
  }

  #latencyMs(): number {
    const { random } = this.#time;
    return chance(random, this.faults.late) ? between(random, 20, 3_000) : between(random, 0.1, 1.5);
  }

  #arrive(sent: Sent): void {
    if (!this.#hasPrimary || sent.term !== this.#term) {
      this.#fail(sent, new MongoNetworkError('the connection was closed'), 0);
      return;
    }
    try {
      if (sent.command.getMore !== undefined) this.#read(sent);
      else this.#execute(sent);
    } catch (error) {
      this.#refuse(sent, error);
    }
  }

  #refuse(sent: Sent, error: unknown): void {
    if (error instanceof Blocked) this.#waitForTransaction(sent);
    else if (error instanceof CommandError) this.#reply(sent, toErrorReply(error));
    else this.#time.onError(error);
  }

  /** A transaction holds the document for a moment. Only when that is over, the real one looks whether it has waited for too long. */
  #waitForTransaction(sent: Sent): void {
    const ms = Math.max(1, Math.min(sent.blockedMs, BLOCKED_MAX_MS));
    this.#time.after(ms, null, () => this.#arrive({ ...sent, blockedMs: sent.blockedMs + ms }));
  }

  /** A transaction that looks at the partitions again, because it did not find them as its instance knows them, and gives up. */
  #noteFence(command: Document): void {
    if (command.autocommit !== false) return;
    const session = keyOf(command.lsid.id);
    if (command.find === 'partitions') this.#looked.add(session);
    if (command.commitTransaction !== undefined) this.#looked.delete(session);
    if (command.abortTransaction === undefined) return;
    if (this.#looked.delete(session)) this.note('workers: outputs of a former owner refused');
  }

  #execute(sent: Sent): void {
    this.#noteFence(sent.command);
    const before = this.server.oplog.length;
    const { reply, waitsFor } = this.server.execute(sent.command, sent.blockedMs);
    if (this.server.oplog.length > before) this.#replicate();
    if (sent.command.killCursors !== undefined) this.#serveReaders();
    if (waitsFor > this.server.majority) this.#waiting.push({ ...sent, length: waitsFor, reply });
    else this.#reply(sent, reply);
  }

  /** The majority follows some time later, in order. */
  #replicate(): void {
    const { length } = this.server.oplog;
    const term = this.#term;
    this.#replicatedAtMs = Math.max(this.#replicatedAtMs, this.#time.nowMs + between(this.#time.random, 0.2, 4));
    this.#time.after(this.#replicatedAtMs - this.#time.nowMs, null, () => {
      if (term === this.#term && !this.#isAlone) this.#reachMajority(length);
    });
  }

  #reachMajority(length: number): void {
    this.server.majority = Math.max(this.server.majority, Math.min(length, this.server.oplog.length));
    const ready = this.#waiting.filter((one) => one.length <= this.server.majority);
    this.#waiting = this.#waiting.filter((one) => one.length > this.server.majority);
    for (const one of ready) this.#reply(one, one.reply);
    this.#serveReaders();
  }

  #read(sent: Sent): void {
    const reply = this.server.readStream(sent.command, false);
    if (reply !== null) {
      this.#reply(sent, reply);
      return;
    }
    const waitMs = Number(sent.command.maxTimeMS ?? 1_000);
    const reading = { ...sent, untilMs: this.#time.nowMs + waitMs };
    this.#reading.push(reading);
    this.#time.after(waitMs, null, () => {
      if (!this.#reading.includes(reading)) return;
      this.#reading = this.#reading.filter((one) => one !== reading);
      this.#answerReader(reading, true);
    });
  }

  #answerReader(reading: Sent, mayBeEmpty: boolean): boolean {
    try {
      const reply = this.server.readStream(reading.command, mayBeEmpty);
      if (reply === null) return false;
      this.#reply(reading, reply);
    } catch (error) {
      this.#refuse(reading, error);
    }
    return true;
  }

  #serveReaders(): void {
    const all = this.#reading;
    this.#reading = [];
    this.#reading.push(...all.filter((one) => !this.#answerReader(one, false)));
  }

  #reply(sent: Sent, reply: Document): void {
    if (sent.isReplyLost) {
      this.note('database: reply lost');
      this.#fail(sent, new MongoNetworkError('the reply was lost'), this.#latencyMs());
      return;
    }
    this.#time.after(this.#latencyMs() + (sent.lateMs ?? 0), sent.owner, () => sent.resolve(reply));
  }

  #fail({ owner, reject }: Sent, error: unknown, ms: number): void {
    this.#time.after(ms, owner, () => reject(error));
  }

  // --- faults ---

  strike(strike: Strike): void {
    this.#strikes.push(strike);
  }

  /** Writes reach no majority from now on. */
  isolate(): void {
    this.#isAlone = true;
  }

  /** They do again. */
  rejoin(): void {
    this.#isAlone = false;
    this.#reachMajority(this.server.oplog.length);
  }

  /** The primary steps down; another one is elected, which has a part of what no majority has. */
  stepDown(): void {
    if (!this.#hasPrimary) return;
    const { random } = this.#time;
    const { majority, oplog } = this.server;
    this.#term++;
    this.#hasPrimary = false;
    const kept = majority + Math.floor(random() * (oplog.length - majority + 1));
    this.note('database: election');
    for (const one of [...this.#waiting, ...this.#reading]) this.#fail(one, this.#interruption(), this.#latencyMs());
    this.#waiting = [];
    this.#reading = [];
    this.#time.after(between(random, 50, ELECTION_MS), null, () => this.#elect(kept));
  }

  #interruption(): MongoNetworkError | CommandError {
    const isClosed = chance(this.#time.random, 0.5);
    return isClosed ? new MongoNetworkError('the connection was closed') : new CommandError(INTERRUPTED, 'interrupted');
  }

  #elect(kept: number): void {
    const lost = this.server.elect(kept);
    if (lost.some(({ collection }) => collection !== null)) this.note('database: rollback');
    this.#hasPrimary = true;
    this.#isAlone = false;
    this.server.noteTime();
    this.#replicate();
    const selecting = this.#selecting;
    this.#selecting = [];
    for (const { owner, resolve } of selecting) this.#time.after(this.#latencyMs(), owner, resolve);
  }

  /** All cursors are lost. */
  dropCursors(): void {
    this.server.dropCursors();
    this.#serveReaders();
  }

  /** Everything works again; there is a primary at the latest after an election. */
  heal(): void {
    this.faults = { ...NO_FAULTS };
    this.#strikes = [];
    if (this.#hasPrimary) this.rejoin();
  }

  /** Time passes for streams even if nobody writes. */
  noteTime(): void {
    if (!this.#hasPrimary) return;
    this.server.noteTime();
    this.#replicate();
  }
}

/** An error as the driver receives it. */
export function toErrorReply({ code, message, labels, more }: CommandError): Document {
  return { ok: 0, errmsg: message, code, ...(labels.length > 0 && { errorLabels: labels }), ...more };
}
