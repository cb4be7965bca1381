/**
 * Devices that carry out commands. One is connected over MQTT and gets them from the delivery, another polls over HTTP. Each answers a
 * command once and repeats the answer until it is stored.
 */
import { toApiError } from '../../src/core/errors.js';
import { LIMITS } from '../../src/core/limits.js';
import type { CommandParts, Link, Message } from './command-parts.js';
import type { Node } from './node.js';
import { between } from './random.js';
import type { VirtualTime } from './virtual-time.js';

/**
 * How a device treats what it receives: `mute` confirms nothing and answers nothing until it works again, `late` confirms when nobody
 * waits for that any more.
 */
export const DEVICE_MODES = ['answers', 'slow', 'mute', 'confirms', 'refuses', 'late'] as const;
export type DeviceMode = (typeof DEVICE_MODES)[number];

/** In these modes it comes to an end with everything. */
const WORKING: ReadonlySet<DeviceMode> = new Set(['answers', 'slow', 'late']);
/** After an instance has ceased to wait for a confirmation, and has sent the next command. */
const LATE_MS = LIMITS.commandConfirmMs + 50;
const ANSWER_AFTER_MS = 50;

/** A command that came to a device. */
export interface Arrival {
  readonly commandId: string;
  readonly command: string;
  /** Which connection it was written to; null over HTTP. */
  readonly holder: string | null;
  readonly status: string | null;
  /** Whether this connection had confirmed it before, as the instance knew. */
  readonly isConfirmed: boolean;
  /** How many entries a majority had when the device asked; over MQTT when it was sent. */
  readonly committed: number;
}

export interface Reported {
  readonly outcome: { readonly status: string; readonly result?: unknown };
  /** The status of the answer; null until there is one that is final. */
  answer: number | null;
}

export interface CommandDeviceOptions {
  readonly time: VirtualTime;
  readonly objectId: string;
  readonly isHttp: boolean;
  readonly credential: string;
  readonly findNode: () => Node | null;
  readonly committed: () => number;
  readonly note: (name: string, details?: string) => void;
}

const POLL_S = 60;
/** Longer than a poll, so that a frozen instance does not hold a device for ever. */
const ANSWER_MS = 75_000;
const AGAIN_MS = 300;
/** A device that has got commands carries them out before it asks for more. */
const HELD_MS = 2_000;

export class CommandDevice {
  readonly objectId: string;
  readonly isHttp: boolean;
  readonly arrivals: Arrival[] = [];
  /** What it answered, by the command. */
  readonly reported = new Map<string, Reported>();
  /** Commands that it confirmed or refused over MQTT, and how many entries a majority had when it did so first. */
  readonly confirmed = new Map<string, number>();
  mode: DeviceMode = 'answers';
  readonly #options: CommandDeviceOptions;
  #connections = 0;
  /** Null while it is not connected. */
  #current: { readonly id: string; readonly lose: () => void } | null = null;
  /** What was confirmed while the instance waited for that. */
  readonly #heard = new Set<string>();
  /** Commands that it has received and keeps for itself. */
  readonly #kept = new Map<string, () => void>();

  constructor(options: CommandDeviceOptions) {
    this.#options = options;
    this.objectId = options.objectId;
    this.isHttp = options.isHttp;
  }

  connect(): void {
    if (this.#current !== null || this.hasDeparted) return;
    const { time, findNode } = this.#options;
    const node = findNode();
    const parts = node?.instance?.commands ?? null;
    if (node === null || parts === null) time.after(100, null, () => this.connect());
    else if (this.isHttp) this.#poll(node, parts);
    else this.#open(node, parts);
  }

  /** The connection breaks; the instance learns it after so long, and the device comes again at once, wherever. */
  drop(learnsMs: number): void {
    if (this.#current === null) return;
    this.#options.note('command device: disconnected', this.objectId);
    const { time } = this.#options;
    const { lose } = this.#current;
    this.#learnsMs = learnsMs;
    lose();
    this.#learnsMs = null;
    time.after(1, null, () => this.connect());
  }

  /** It works again, and answers what it has kept. One that has worked all the time, if slowly, keeps its connection. */
  heal(): void {
    const hasWorked = WORKING.has(this.mode) && this.#kept.size === 0;
    this.mode = 'answers';
    for (const answer of this.#kept.values()) answer();
    this.#kept.clear();
    if (!hasWorked) this.drop(1);
  }

  /** It confirms nothing more, and goes when it has got this many messages, for ever. */
  departAfter(messages: number): void {
    this.mode = 'mute';
    this.#departsAfter = messages;
  }

  get hasDeparted(): boolean {
    return this.#departsAfter === 0;
  }

  /** How many messages it still waits for before it goes; null while it stays. */
  #departsAfter: number | null = null;

  /** How soon the instance learns of the end of the connection that ends now. */
  #learnsMs: number | null = null;

  #open(node: Node, parts: CommandParts): void {
    const { time, objectId } = this.#options;
    const id = `${objectId}/${++this.#connections}`;
    let link: Link | null = null;
    const lose = (): void => {
      if (this.#current?.id !== id) return;
      this.#current = null;
      forget();
      time.after(this.#learnsMs ?? 1, node.incarnation, () => link?.end());
      if (this.#learnsMs === null) time.after(between(time.random, 1, 300), null, () => this.connect());
    };
    const forget = node.onKill(lose);
    this.#current = { id, lose };
    time.after(between(time.random, 0.2, 2), node.incarnation, () => {
      if (this.#current?.id !== id) return;
      link = parts.connect({
        id,
        objectId,
        write: (message, onSent) => {
          this.#note(message, id);
          onSent(true);
          const confirm = (code: number): void => {
            const commandId = commandIdOf(message);
            if (!this.confirmed.has(commandId)) this.confirmed.set(commandId, this.#options.committed());
            time.after(between(time.random, 0.2, 3), node.incarnation, () => {
              if (link?.confirm(message.messageId, code)) this.#heard.add(`${commandId} ${id}`);
            });
          };
          const arrive = (): void => {
            if (this.#current?.id === id) this.#receive(message, confirm);
          };
          time.after(between(time.random, 0.2, 3), null, arrive);
        },
      });
    });
  }

  #note({ payload }: Message, holder: string): void {
    const { _id: commandId, command } = JSON.parse(payload) as { _id: string; command: string };
    if (this.arrivals.some((one) => one.commandId === commandId)) this.#options.note('command: sent again', command);
    this.arrivals.push({
      commandId,
      command,
      holder,
      status: null,
      isConfirmed: this.#heard.has(`${commandId} ${holder}`),
      committed: this.#options.committed(),
    });
  }

  #receive({ payload }: Message, confirm: (code: number) => void): void {
    const { time, note } = this.#options;
    const { _id, command } = JSON.parse(payload) as { _id: string; command: string };
    if (this.mode === 'refuses') {
      note('command device: refuses', command);
      confirm(0x83);
      return;
    }
    if (this.#departsAfter !== null && --this.#departsAfter === 0) {
      this.drop(1);
      return;
    }
    if (this.mode === 'mute') {
      this.#kept.set(_id, () => this.#carryOut(_id, 1));
      return;
    }
    const isSlow = this.mode === 'slow';
    const lateMs = this.mode === 'late' ? LATE_MS : isSlow ? between(time.random, 100, 25_000) : 0;
    time.after(lateMs, null, () => confirm(0));
    if (this.mode === 'confirms') this.#kept.set(_id, () => this.#carryOut(_id, 1));
    else this.#carryOut(_id, isSlow ? between(time.random, 1, 30_000) : lateMs + ANSWER_AFTER_MS);
  }

  /** Once, however often it comes. */
  #carryOut(commandId: string, afterMs: number): void {
    if (this.reported.has(commandId)) return;
    const nth = this.reported.size;
    const outcome = nth % 4 === 3 ? { status: 'failed', result: nth } : { status: 'done', result: { nth } };
    const reported: Reported = { outcome, answer: null };
    this.reported.set(commandId, reported);
    this.#options.time.after(afterMs, null, () => this.#report(commandId, reported));
  }

  #report(commandId: string, reported: Reported): void {
    this.#ask<number>(
      async (parts) => {
        const { outcome } = reported;
        if (!this.isHttp) return parts.publishResult(this.objectId, commandId, outcome).then(() => 200, statusOf);
        const { objectId } = this;
        const { credential } = this.#options;
        const more = { commandID: commandId };
        return (await parts.call({ route: 'endCommand', credential, objectId, more, body: outcome })).status;
      },
      (status) => {
        if (status !== null && status < 500) {
          reported.answer = status;
          this.#options.note(`command device: result ${status}`);
        } else this.#options.time.after(AGAIN_MS, null, () => this.#report(commandId, reported));
      },
    );
  }

  /** Asks some instance; null when no answer came. */
  #ask<T>(run: (parts: CommandParts) => Promise<T>, done: (answer: T | null) => void): void {
    const { time, findNode } = this.#options;
    const node = findNode();
    const parts = node?.instance?.commands ?? null;
    if (node === null || parts === null) {
      time.after(1, null, () => done(null));
      return;
    }
    askNode(time, node, { run: () => run(parts), done });
  }

  #poll(node: Node, parts: CommandParts): void {
    const { time, objectId, credential, committed } = this.#options;
    const id = `${objectId}/${++this.#connections}`;
    const next = (ms: number): void => {
      if (this.#current?.id !== id) return;
      this.#current = null;
      time.after(ms, null, () => this.connect());
    };
    this.#current = { id, lose: () => next(1) };
    const before = committed();
    const query = { status: 'queued,sent', wait: String(POLL_S) };
    askNode(time, node, {
      run: () => parts.call({ route: 'listCommandsOfObject', credential, objectId, query }),
      done: (answer) => {
        if (this.#current?.id !== id) return;
        if (answer?.status !== 200) {
          next(AGAIN_MS);
          return;
        }
        for (const one of answer.body as { _id: string; command: string; status: string }[]) {
          const { _id: commandId, command, status } = one;
          this.arrivals.push({ commandId, command, holder: null, status, isConfirmed: false, committed: before });
          if (WORKING.has(this.mode)) this.#carryOut(commandId, 50);
          else this.#kept.set(commandId, () => this.#carryOut(commandId, 1));
        }
        next(HELD_MS);
      },
    });
  }
}

const commandIdOf = ({ payload }: Message): string => (JSON.parse(payload) as { _id: string })._id;

const statusOf = (error: unknown): number => toApiError(error).status;

export interface Asking<T> {
  readonly run: () => Promise<T>;
  /** Null: the instance died, or did not answer in time. */
  readonly done: (answer: T | null) => void;
}

/** A request over a network that takes time. */
export function askNode<T>(time: VirtualTime, node: Node, { run, done }: Asking<T>): void {
  let isOver = false;
  const end = (answer: T | null): void => {
    if (isOver) return;
    isOver = true;
    forget();
    cancel();
    done(answer);
  };
  const forget = node.onKill(() => void time.after(1, null, () => end(null)));
  const cancel = time.after(ANSWER_MS, null, () => end(null));
  time.after(between(time.random, 0.2, 2), node.incarnation, () => {
    run().then(
      (answer) => void time.after(between(time.random, 0.2, 2), null, () => end(answer)),
      (error: unknown) => time.onError(error),
    );
  });
}
