/**
 * Who is brought up to the present next. A user has clients in one group at a time, and after that rests for as long as the group
 * kept the process busy: so nobody waits for all the clients of another user, however often those come back.
 */

export interface BackfillQueue<Client> {
  add(client: Client): void;
  /** Whether users wait who could be served. */
  isWaitedFor(): boolean;
}

export interface BackfillQueueOptions<Client> {
  readonly groupsAtOnce: number;
  /** Whether users wait for each other's clients: where all are read from nearly the same place on, one reading does for all. */
  readonly isShared: boolean;
  readonly userOf: (client: Client) => string;
  /** Gives how long it kept the process busy, ms. Does not throw. */
  readonly serve: (group: readonly Client[]) => Promise<number>;
}

export const createBackfillQueue = <Client>(options: BackfillQueueOptions<Client>): BackfillQueue<Client> =>
  new Queue(options);

class Queue<Client> implements BackfillQueue<Client> {
  readonly #options: BackfillQueueOptions<Client>;
  readonly #waiting = new Map<string, Client[]>();
  /** Of users who are served: the end of time; of those who rest, the end of that. */
  readonly #notBefore = new Map<string, number>();
  #groups = 0;
  #isAwaited = false;
  #timer: NodeJS.Timeout | undefined;

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
    // In the next turn, so that all who come in this one are one group.
    setImmediate(() => {
      this.#isAwaited = false;
      this.#startNext();
    });
  }

  isWaitedFor(): boolean {
    return this.#readyUsers().length > 0;
  }

  #readyUsers(): string[] {
    const nowMs = performance.now();
    return [...this.#waiting.keys()].filter((user) => (this.#notBefore.get(user) ?? 0) <= nowMs);
  }

  #startNext(): void {
    const { groupsAtOnce, isShared } = this.#options;
    while (this.#groups < groupsAtOnce) {
      const users = this.#readyUsers();
      if (users.length === 0) break;
      void this.#run(isShared ? users : users.slice(0, 1));
    }
    forgetRested(this.#notBefore);
    // Somebody rests who waits.
    clearTimeout(this.#timer);
    const ends = [...this.#waiting.keys()].flatMap((user) => this.#notBefore.get(user) ?? []);
    const nextMs = Math.min(...ends) - performance.now();
    if (this.#groups === groupsAtOnce || !Number.isFinite(nextMs)) return;
    this.#timer = setTimeout(() => this.#startNext(), Math.max(nextMs, 1)).unref();
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
    const untilMs = performance.now() + busyMs / users.length;
    for (const user of users) this.#notBefore.set(user, untilMs);
    this.#startNext();
  }
}

function forgetRested(notBefore: Map<string, number>): void {
  const nowMs = performance.now();
  for (const [user, untilMs] of notBefore) if (untilMs <= nowMs) notBefore.delete(user);
}
