/** A machine that runs one instance after the other: it is killed, frozen and started again. */
import type { Logger } from 'pino';
import type { SimulatedDatabase } from './database/network.js';
import { type Instance, type Outside, startInstance } from './instance.js';
import type { Extra } from './steps.js';
import { Incarnation, type VirtualTime } from './virtual-time.js';

export interface NodeOptions {
  readonly time: VirtualTime;
  readonly database: SimulatedDatabase;
  /** Null in runs without workers. */
  readonly outside: Outside | null;
  readonly extra: Extra | null;
  readonly log: (incarnation: Incarnation, level: string, details: object, message: string) => void;
}

export class Node {
  readonly name: string;
  incarnation: Incarnation;
  /** Null until it accepts requests. */
  instance: Instance | null = null;
  isUp = false;
  #lives = 0;
  #skewMs = 0;
  readonly #options: NodeOptions;
  readonly #onKill = new Set<() => void>();

  constructor(name: string, options: NodeOptions) {
    this.name = name;
    this.#options = options;
    this.incarnation = new Incarnation(`${name}.0`);
  }

  async start(): Promise<void> {
    if (this.isUp) return;
    this.isUp = true;
    const incarnation = new Incarnation(`${this.name}.${++this.#lives}`);
    incarnation.skewMs = this.#skewMs;
    this.incarnation = incarnation;
    const { time, database, outside, extra } = this.#options;
    await time.runAs(incarnation, () => {
      startInstance(database, { log: this.#logOf(incarnation), outside, extra }).then((instance) => {
        if (!incarnation.isFenced) this.instance = instance;
      }, time.onError);
    });
  }

  /** Nothing of it runs afterwards, and its connections break. */
  kill(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.incarnation.isFenced = true;
    this.instance = null;
    for (const call of [...this.#onKill]) call();
    this.#onKill.clear();
  }

  skew(ms: number): void {
    this.#skewMs = ms;
    this.incarnation.skewMs = ms;
  }

  onKill(call: () => void): () => void {
    this.#onKill.add(call);
    return () => void this.#onKill.delete(call);
  }

  #logOf(incarnation: Incarnation): Logger {
    const to = (level: string) => (details: object, message: string) =>
      this.#options.log(incarnation, level, details, message);
    const log = { trace: to('trace'), debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
    return Object.assign(log, { child: () => log }) as unknown as Logger;
  }
}
