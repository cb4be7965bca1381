/**
 * A fair queue of users whose clients resume. The clients of a user are served as one group; afterwards the user pauses for the time
 * that the group kept the process busy. So no user waits for all clients of another one, however often these reconnect.
 */
import { clock, type Timer } from '../platform/clock.js';

export interface BackfillQueue<Client> {
  add(client: Client): void;
  /** Whether users are waiting that are not pausing. */
  isWaitedFor(): boolean;
}

export interface BackfillQueueOptions<Client> {
  readonly groupsAtOnce: number;
  /** Whether all waiting users are served together: if they resume from nearly the same position, one read serves all. */
  readonly isShared: boolean;
  readonly userOf: (client: Client) => string;
  /** Resolves with the busy time, ms. Never rejects. */
  readonly serve: (group: readonly Client[]) => Promise<number>;
}

export const createBackfillQueue = <Client>(options: BackfillQueueOptions<Client>): BackfillQueue<Client> =>
  new Queue(options);

class Queue<Client> implements BackfillQueue<Client> {
  readonly #options: BackfillQueueOptions<Client>;
  readonly #waiting = new Map<string, Client[]>();
  /** When each user may be served again: infinity while being served, otherwise the end of the pause. */
  readonly #notBefore = new Map<string, number>();
  #groups = 0;
  #isAwaited = false;
  #timer: Timer | undefined;

  constructor(options: BackfillQueueOptions<Client>) {
    this.#options = options;
  }

  add(client: Client): void {
    const user = this.#options.userOf(client);
    const clients = this.#waiting.get(user);
    if (clients === undefined) this.#waiting.set(user, [client]);
    else clients.push(client);
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    // In the next turn, so that clients that arrive together form one group.
    clock.setImmediate(() => {
      this.#isAwaited = false;
      this.#startNext();
    });
  }

  isWaitedFor(): boolean {
    return this.#readyUsers(clock.steadyMs()).length > 0;
  }

  #readyUsers(nowMs: number): string[] {
    return [...this.#waiting.keys()].filter((user) => (this.#notBefore.get(user) ?? 0) <= nowMs);
  }

  #startNext(): void {
    const { groupsAtOnce, isShared } = this.#options;
    // Read once: a pause that ended between two readings would be over, and its user neither ready nor waited for.
    const nowMs = clock.steadyMs();
    while (this.#groups < groupsAtOnce) {
      const users = this.#readyUsers(nowMs);
      if (users.length === 0) break;
      void this.#run(isShared ? users : users.slice(0, 1));
    }
    removeEnded(this.#notBefore, nowMs);
    // Wakes when the next waiting user's pause ends.
    clock.clearTimer(this.#timer);
    const ends = [...this.#waiting.keys()].flatMap((user) => this.#notBefore.get(user) ?? []);
    const nextMs = Math.min(...ends) - nowMs;
    if (this.#groups === groupsAtOnce || !Number.isFinite(nextMs)) return;
    this.#timer = clock.setTimeout(() => this.#startNext(), Math.max(nextMs, 1)).unref();
  }

  async #run(users: readonly string[]): Promise<void> {
    const group = users.flatMap((user) => this.#waiting.get(user) ?? []);
    for (const user of users) {
      this.#waiting.delete(user);
      this.#notBefore.set(user, Number.POSITIVE_INFINITY);
    }
    this.#groups++;
    const busyMs = await this.#options.serve(group);
    this.#groups--;
    const untilMs = clock.steadyMs() + busyMs / users.length;
    for (const user of users) this.#notBefore.set(user, untilMs);
    this.#startNext();
  }
}

function removeEnded(notBefore: Map<string, number>, nowMs: number): void {
  for (const [user, untilMs] of notBefore) if (untilMs <= nowMs) notBefore.delete(user);
}
