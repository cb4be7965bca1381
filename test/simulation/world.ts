/**
 * A whole world: the database, the instances, the devices and the clients, and the steps that disturb them.
 * Long because every step acts on the same few parts.
 */
import { type Collection, type Document, type MongoClient, ObjectId } from 'mongodb';
import { createRandom } from '../../scripts/bench/random.js';
import { LIMITS } from '../../src/core/limits.js';
import { replaceClock } from '../../src/platform/clock.js';
import type { WorkerStats } from '../../src/platform/ops/worker-metrics.js';
import type { Workers } from '../../src/workers.js';
import { checkAlarms, RULES, type SimulatedRule } from './alarm-oracles.js';
import type { Census } from './census.js';
import { Commands } from './commands.js';
import { replaceDriverTime, simulatedClient } from './database/client.js';
import { isNumber } from './database/compare.js';
import { SimulatedDatabase } from './database/network.js';
import { Device, type SendingDevice } from './device.js';
import { guard } from './guard.js';
import { credentialOf } from './instance.js';
import { replaceLimits } from './limits.js';
import { MqttDevice } from './mqtt-device.js';
import { Node } from './node.js';
import { checkReceived, checkStored, type Viewer, Violation } from './oracles.js';
import { PACKING_LIMITS, PACKING_REST_MS, Packing, packedIn } from './packing.js';
import { initialConfig, isMqtt, Presence } from './presence.js';
import { between } from './random.js';
import { Receivers } from './receivers.js';
import {
  type CommandStep,
  type Extra,
  extraOf,
  type PackingStep,
  type Plan,
  type PresenceStep,
  type Step,
  type StrikeStep,
  stepsOf,
} from './steps.js';
import { SubscribedClient } from './subscriber.js';
import { EPOCH_MS, type Incarnation, VirtualTime } from './virtual-time.js';
import { checkWebhooks } from './webhook-oracles.js';

const DATABASE = 'vigil';
const DEVICES = 4;
const HOUR_MS = 3_600_000;
const SETTLE_MS = 5_000;
const SETTLE_ROUNDS = 40;
/** How long what is sent when nothing disturbs is on its way, before anybody looks whether it has come. */
const PROBE_MS = 500;
/** More of them would only make a run slower that has more than ingest and the live feed. */
const INSTANCES_MAX = 3;

const COMMAND_STEPS: ReadonlySet<string> = new Set(['order', 'end', 'bar', 'look', 'drop', 'behave']);
const isCommandStep = (step: Step): step is Step & CommandStep => COMMAND_STEPS.has(step.kind);
const PRESENCE_STEPS: ReadonlySet<string> = new Set(['break', 'silence', 'burst']);
const isPresenceStep = (step: Step): step is Step & PresenceStep => PRESENCE_STEPS.has(step.kind);

const PACKING_STEPS: ReadonlySet<string> = new Set(['backlog', 'repeat', 'read']);
const isPackingStep = (step: Step): step is Step & PackingStep => PACKING_STEPS.has(step.kind);

const handlerOf = (nth: number): string => HANDLERS[nth % HANDLERS.length]?.name as string;

const idOf = (kind: string, nth: number): ObjectId => new ObjectId(`${kind}${String(nth).padStart(22, '0')}`);
const ROLE = idOf('d0', 1);
/** The root group and two groups below it. */
const GROUPS = [1, 2, 3].map((nth) => idOf('c0', nth));
const USERS = [
  { id: idOf('b0', 1), group: 0 },
  { id: idOf('b0', 2), group: 1 },
  { id: idOf('b0', 3), group: 2 },
];

/** Of the root group; no step changes its rights, which rules and devices have. */
const WATCHMAN = idOf('b0', 9);
const WATCHMAN_TOKEN = idOf('e1', 9);
const SIMULATED_RULES = RULES.map((rule, nth): SimulatedRule => ({ ...rule, id: String(idOf('91', nth)) }));

/** Webhooks: of the root group, of a group below it, and one that sends batches. */
const HANDLERS = [
  { name: 'h0', owner: 0, mode: 'object' },
  { name: 'h1', owner: 1, mode: 'object' },
  { name: 'h2', owner: 2, mode: 'batch' },
] as const;
/** Clocks of instances that follow changes differ by less than the margin of a refill (`LIMITS.refillMarginMs`). */
const WORKER_SKEW_MS = 25_000;
/** What was heard a moment ago says nothing of presence where clocks differ by more. */
const PRESENCE_SKEW_MS = 50;
/** So long nothing may change once everybody is what he should be: instances look again every few seconds. */
const PRESENCE_REST_MS = 6_000;
/** How many seconds the retries and pauses of webhooks take at most, from the moment in which their receivers work again. */
const WORKER_SETTLE_ROUNDS = 300;
/** A few for each takeover and each gap. */
const REFILLS_MAX = 200;

const offlineAfterUpdate = (ms: number | null): Document =>
  ms === null ? { $unset: { 'config.offlineAfter': 1 } } : { $set: { 'config.offlineAfter': ms } };

export interface Outcome {
  readonly census: Census;
  readonly trace: readonly string[];
  readonly events: number;
}

export interface WorldParts {
  readonly instances: number;
  readonly extra: Extra | null;
}

export class World {
  readonly time = new VirtualTime();
  readonly database: SimulatedDatabase;
  readonly census: Census = new Map();
  readonly trace: string[] = [];
  readonly nodes: Node[];
  readonly devices: SendingDevice[];
  readonly viewers: Viewer[];
  readonly #operator: MongoClient;
  readonly #errors: unknown[] = [];
  readonly #openBreakers = new WeakMap<Workers, number>();

  /** Null in a run without workers. */
  readonly receivers: Receivers | null;

  /** Null in a run without commands. */
  readonly commands: Commands | null;

  /** Null in a run without presence. */
  readonly presence: Presence | null;

  /** Null in a run without packing. */
  readonly packing: Packing | null;

  constructor({ instances, extra }: WorldParts) {
    this.time.onError = (error) => void this.#errors.push(error);
    this.database = new SimulatedDatabase(this.time, DATABASE, (name) => this.note(name));
    this.receivers = extra === 'workers' ? this.#createReceivers() : null;
    const length = extra === null ? instances : Math.min(instances, INSTANCES_MAX);
    this.nodes = Array.from({ length }, (_, nth) => this.#createNode(`i${nth}`, extra));
    this.devices = Array.from({ length: DEVICES }, (_, nth) => this.#createDevice(nth, extra));
    this.viewers = [0, 1, 2, 0].map((user, nth) => this.#createViewer(user, nth));
    this.#operator = simulatedClient(this.database);
    this.commands = extra === 'commands' ? this.#createCommands() : null;
    this.presence = extra === 'presence' ? this.#createPresence() : null;
    this.packing = extra === 'packing' ? this.#createPacking() : null;
    this.#seed();
  }

  note(name: string, details = ''): void {
    this.census.set(name, (this.census.get(name) ?? 0) + 1);
    this.say(details === '' ? name : `${name} ${details}`);
  }

  say(text: string): void {
    this.trace.push(`${(this.time.nowMs - EPOCH_MS).toFixed(2).padStart(10)} ${text}`);
  }

  #createNode(name: string, extra: Extra | null): Node {
    const log = (incarnation: Incarnation, level: string, details: object, message: string): void => {
      if (level !== 'info' && level !== 'warn' && level !== 'error') return;
      const { err } = details as { err?: Error };
      this.note(`log: ${message}`, `(${incarnation.name}: ${err?.message ?? ''})`);
    };
    const { time, database, receivers } = this;
    const note = (what: string): void => this.note(what);
    return new Node(name, { time, database, log, extra, outside: receivers && { receivers, note } });
  }

  #createReceivers(): Receivers {
    const committed = (): number => this.database.server.majority;
    return new Receivers({ time: this.time, committed, note: (name, details) => this.note(name, details) });
  }

  #createDevice(nth: number, extra: Extra | null): SendingDevice {
    const Kind = extra === 'presence' && isMqtt(nth) ? MqttDevice : Device;
    return new Kind({
      time: this.time,
      objectId: idOf('a0', nth).toHexString(),
      ownId: `o${nth}`,
      groupId: String(GROUPS[1 + (nth % 2)]),
      findNode: () => this.#findNode(),
      note: (name, details) => this.note(name, details),
    });
  }

  #createViewer(user: number, nth: number): Viewer {
    const userId = String(USERS[user]?.id);
    const tokenId = String(idOf('e0', nth));
    const client = new SubscribedClient({
      time: this.time,
      name: `client ${nth}`,
      credential: credentialOf(tokenId, userId),
      findNode: () => this.#findNode(),
      committed: () => this.database.server.majority,
      note: (name, details) => this.note(name, details),
      onGap: () => undefined,
    });
    return { client, userId, tokenId };
  }

  #createCommands(): Commands {
    const senders = USERS.map(({ id }, nth) => {
      const userId = String(id);
      const tokenId = String(idOf('e1', nth));
      return { userId, tokenId, credential: credentialOf(tokenId, userId) };
    });
    return new Commands({
      time: this.time,
      database: this.database,
      objectIds: this.devices.map(({ objectId }) => objectId),
      senders,
      deviceCredential: credentialOf(String(WATCHMAN_TOKEN), String(WATCHMAN)),
      findNode: () => this.#findNode(),
      removeToken: (id) => this.#operate('tokens', (tokens) => tokens.deleteOne({ _id: new ObjectId(id) })),
      note: (name, details) => this.note(name, details),
    });
  }

  #createPresence(): Presence {
    return new Presence({
      time: this.time,
      database: this.database,
      devices: this.devices,
      setOfflineAfter: (id, ms) => this.#change('objects', new ObjectId(id), offlineAfterUpdate(ms)),
      note: (name, details) => this.note(name, details),
    });
  }

  #createPacking(): Packing {
    const { time, database, nodes } = this;
    const devices = this.devices.filter((device) => device instanceof Device);
    return new Packing({ time, database, devices, nodes, note: (name, details) => this.note(name, details) });
  }

  #findNode(): Node | null {
    const ready = this.nodes.filter(({ isUp, instance }) => isUp && instance !== null);
    return ready[Math.floor(this.time.random() * ready.length)] ?? null;
  }

  #seed(): void {
    const { server } = this.database;
    const insert = (collection: string, documents: Document[]): void =>
      void server.execute({ insert: collection, documents, writeConcern: { w: 'majority' } });
    insert('roles', [{ _id: ROLE, name: 'all', credentials: ['* /*'] }]);
    insert(
      'users',
      USERS.map(({ id, group }) => ({ _id: id, login: String(id), role: ROLE, ...this.#placeOf(group) })),
    );
    insert(
      'tokens',
      this.viewers.map(({ userId }, nth) => ({ _id: idOf('e0', nth), user: new ObjectId(userId), expiresAt: 1e15 })),
    );
    insert(
      'objects',
      this.devices.map((_, nth) => this.#objectOf(nth)),
    );
    const watchman = { _id: WATCHMAN, login: String(WATCHMAN), role: ROLE, ...this.#placeOf(0) };
    if (this.commands !== null) {
      const tokens = USERS.map(({ id }, nth) => ({ _id: idOf('e1', nth), user: id, expiresAt: 1e15 }));
      insert('tokens', [...tokens, { _id: WATCHMAN_TOKEN, user: WATCHMAN, expiresAt: 1e15 }]);
      insert('users', [watchman]);
    }
    if (this.receivers !== null) {
      insert('handlers', HANDLERS.map(this.#handlerOf));
      insert('users', [watchman]);
      insert('rules', SIMULATED_RULES.map(this.#ruleOf));
    }
    server.majority = server.oplog.length;
  }

  #handlerOf = ({ name, owner, mode }: (typeof HANDLERS)[number], nth: number): Document => ({
    _id: idOf('f0', nth),
    name,
    owner: USERS[owner]?.id,
    access: [],
    ...this.#placeOf(owner),
    time: EPOCH_MS - HOUR_MS,
    url: `https://${name}.example.com/`,
    mode,
    _secrets: [{ secret: 'whsec_c2VjcmV0', until: null }],
  });

  #ruleOf = ({ id, fields }: SimulatedRule): Document => ({
    _id: new ObjectId(id),
    name: 'rule',
    ...fields,
    // Packets that came late act as well.
    control: '300 days',
    then: [{ command: 'stop' }],
    owner: WATCHMAN,
    access: [],
    ...this.#placeOf(0),
    time: EPOCH_MS - HOUR_MS,
  });

  #objectOf(nth: number): Document {
    const place = this.#placeOf(1 + (nth % 2));
    const config = this.presence !== null && { config: initialConfig(nth) };
    const named = { _id: idOf('a0', nth), id: `o${nth}`, name: `object ${nth}` };
    return { ...named, owner: USERS[0]?.id, access: [], ...place, ...config };
  }

  #placeOf(group: number): Document {
    const own = GROUPS[group] as ObjectId;
    return { group: own, branch: group === 0 ? [own] : [GROUPS[0], own] };
  }

  async start(): Promise<void> {
    for (const node of this.nodes) await node.start();
    await this.time.advance(20);
    for (const { client } of this.viewers) client.connect();
    this.commands?.start();
    this.presence?.wake();
    await this.time.advance(20);
    this.#check();
  }

  async run(step: Step): Promise<void> {
    this.time.random = createRandom(step.salt);
    const { salt: _salt, ms: _ms, ...shown } = step;
    this.say(`step ${JSON.stringify(shown)}`);
    await this.#perform(step);
    await this.time.advance(step.ms);
    this.#check();
  }

  async #perform(step: Step): Promise<void> {
    const { database } = this;
    if (step.kind === 'send') this.#send(step);
    else if (step.kind === 'share' || step.kind === 'unshare') this.#share(step);
    else if (step.kind === 'rename') this.#change('objects', this.#deviceId(step.device), { $inc: { renamed: 1 } });
    else if (step.kind === 'remove' || step.kind === 'create') this.#removeOrCreate(step.kind, step.device);
    else if (step.kind === 'move') this.#move(step);
    else if (step.kind === 'revoke') this.#revoke(step.client % this.viewers.length);
    else if (step.kind === 'disconnect') this.#client(step.client).disconnect();
    else if (step.kind === 'return') this.#return(step);
    else if (step.kind === 'stall') this.#stall(this.#client(step.client));
    else if (step.kind === 'kill') this.#kill(this.#node(step.instance), step.downMs);
    else if (step.kind === 'freeze') this.#freeze(this.#node(step.instance), step.downMs);
    else if (step.kind === 'skew') this.#skew(step);
    else if (step.kind === 'trouble') this.receivers?.trouble(handlerOf(step.handler), step);
    else if (step.kind === 'recover') this.receivers?.heal();
    else if (step.kind === 'wait') return;
    else if (isCommandStep(step)) this.commands?.perform(step);
    else if (isPresenceStep(step)) this.presence?.perform(step);
    else if (isPackingStep(step)) this.packing?.perform(step);
    else if (step.kind === 'strike') this.#strike(step);
    else if (step.kind === 'elect') database.stepDown();
    else if (step.kind === 'isolate') database.isolate();
    else if (step.kind === 'rejoin') database.rejoin();
    else if (step.kind === 'drop cursors') database.dropCursors();
    else if (step.kind === 'shorten') database.server.shortenOplog(step.kept);
    else if (step.kind === 'disturb') database.faults[step.fault] = step.share;
    else database.faults = { requestLost: 0, replyLost: 0, late: 0, twice: 0 };
  }

  #node = (nth: number): Node => this.nodes[nth % this.nodes.length] as Node;
  #client = (nth: number): SubscribedClient => (this.viewers[nth % this.viewers.length] as Viewer).client;
  #deviceId = (nth: number): ObjectId => new ObjectId(this.devices[nth % DEVICES]?.objectId);

  #send({ device, count, time }: Extract<Step, { kind: 'send' }>): void {
    const nowMs = Math.floor(this.time.nowMs);
    const timeMs = { none: null, late: nowMs - HOUR_MS, future: nowMs + HOUR_MS }[time];
    this.devices[device % DEVICES]?.send(count, timeMs);
  }

  /** Something that an administrator does; whether it was done shows only what is stored. */
  #operate(collection: string, run: (documents: Collection<Document>) => Promise<unknown>): void {
    void this.time.runAs(null, () => {
      run(this.#operator.db(DATABASE).collection(collection)).catch(() => this.note('operator: failed'));
    });
  }

  #change(collection: string, _id: ObjectId, update: Document | Document[]): void {
    this.#operate(collection, (documents) => documents.updateOne({ _id }, update));
  }

  #share({ kind, device, user }: Extract<Step, { kind: 'share' | 'unshare' }>): void {
    const access = USERS[user % USERS.length]?.id;
    this.note(kind === 'share' ? 'rights: gained' : 'rights: lost');
    const update = kind === 'share' ? { $addToSet: { access } } : { $pull: { access } };
    this.#change('objects', this.#deviceId(device), update);
  }

  #move({ user, group }: Extract<Step, { kind: 'move' }>): void {
    const { id } = USERS[user % USERS.length] as (typeof USERS)[number];
    this.#changeUser(id, this.#placeOf(group % GROUPS.length));
  }

  /** As `toUpdate` does. */
  #changeUser(id: ObjectId, fields: Document): void {
    const _at = { $max: [Math.floor(this.time.nowMs), { $add: [{ $ifNull: ['$_at', 0] }, 1] }] };
    this.#change('users', id, [{ $set: Object.assign({}, fields, { _at }) }]);
  }

  #revoke(nth: number): void {
    this.#operate('tokens', (documents) => documents.deleteOne({ _id: idOf('e0', nth) }));
  }

  #removeOrCreate(kind: 'remove' | 'create', nth: number): void {
    const object = this.#objectOf(nth % DEVICES);
    this.note(`object: ${kind}`);
    this.#operate('objects', (documents) =>
      kind === 'remove' ? documents.deleteOne({ _id: object._id }) : documents.insertOne(object),
    );
  }

  #return({ client, group, apartMs }: Extract<Step, { kind: 'return' }>): void {
    const { client: returning, userId } = this.viewers[client % this.viewers.length] as Viewer;
    const user = new ObjectId(userId);
    this.#changeUser(user, { renamed: this.time.random() });
    this.time.after(apartMs, null, () => returning.disconnect(1));
    const place = this.#placeOf(group % GROUPS.length);
    this.time.after(apartMs + between(this.time.random, 0, 6), null, () => this.#changeUser(user, place));
  }

  #stall(client: SubscribedClient): void {
    client.stall();
    this.time.after(15_000, null, () => client.resume());
  }

  #kill(node: Node, downMs: number): void {
    if (!node.isUp) return;
    this.note('node: killed', node.name);
    node.kill();
    this.time.after(downMs, null, () => void node.start());
  }

  #freeze({ incarnation, name }: Node, downMs: number): void {
    if (incarnation.held !== null) return;
    this.note('node: frozen', name);
    this.time.freeze(incarnation);
    this.time.after(downMs, null, () => this.time.thaw(incarnation));
  }

  #strike({ instance, at, moment, left, fault, downMs }: StrikeStep): void {
    const node = this.#node(instance);
    if (!node.isUp) return;
    const acts = {
      freeze: () => this.#freeze(node, downMs),
      kill: () => this.#kill(node, downMs),
      elect: () => this.database.stepDown(),
      lose: null,
      'lose all': null,
      delay: null,
      die: () => void this.time.after(between(this.time.random, 0, downMs), incarnation, () => this.#kill(node, 400)),
    };
    const { incarnation } = node;
    const act = (): void => {
      this.note(`database: strike ${fault} ${moment} ${at}`, node.name);
      acts[fault]?.();
    };
    const lateMs = fault === 'delay' || fault === 'die' ? downMs : 0;
    const isLost = fault === 'lose' || fault === 'lose all';
    const times = fault === 'lose all' ? 2 : 1;
    this.database.strike({ owner: incarnation, at, moment, left, times, act, isLost, lateMs });
  }

  #noteBreakers(workers: Workers | null | undefined): void {
    if (!workers) return;
    const open = workers.stats().openBreakers;
    const before = this.#openBreakers.get(workers) ?? 0;
    this.#openBreakers.set(workers, open);
    if (open > before) this.note('webhooks: breaker opened');
    if (open < before) this.note('webhooks: breaker closed');
  }

  #skew({ instance, skewMs }: Extract<Step, { kind: 'skew' }>): void {
    const maxMs =
      this.receivers !== null ? WORKER_SKEW_MS : this.presence !== null ? PRESENCE_SKEW_MS : Number.POSITIVE_INFINITY;
    this.note('node: clock set');
    this.#node(instance).skew(Math.max(-maxMs, Math.min(skewMs, maxMs)));
  }

  #check(): void {
    for (const { instance } of this.nodes) this.#noteBreakers(instance?.workers);
    if (this.#errors.length > 0) throw this.#errors[0];
  }

  /** The faults stop: everything must come to rest, and everyone must get everything. */
  async settle(): Promise<void> {
    this.say('heal');
    this.time.random = createRandom(1);
    this.database.heal();
    this.receivers?.heal();
    for (const { client } of this.viewers) client.resume();
    await this.time.advance(SETTLE_MS);
    // A primary may have been elected since.
    this.database.heal();
    this.commands?.heal();
    this.presence?.wake();
    this.#sendLast();
    await this.#rest();
    await this.time.advance(SETTLE_MS);
    this.#check();
    await this.#rest();
    if (this.commands !== null) await this.#checkCommands(this.commands);
    if (this.presence !== null) await this.#checkPresence(this.presence);
    if (this.packing !== null) await this.#checkPacking(this.packing);
    const objectIds = this.devices.map(({ objectId }) => objectId);
    checkStored(this.database.server, this.devices, packedIn(this.database.server));
    for (const viewer of this.viewers) checkReceived(this.database.server, viewer, objectIds);
    if (this.receivers !== null) this.#checkWebhooks(this.receivers, objectIds);
  }

  /** One more packet of each device. One that is connected is online without any. */
  #sendLast(): void {
    for (const device of this.devices) if (!(device instanceof MqttDevice)) device.send(1, null);
  }

  /** What is sent when nothing disturbs must arrive as well. */
  async #checkCommands(commands: Commands): Promise<void> {
    commands.probe();
    await this.time.advance(PROBE_MS);
    await this.#rest();
    commands.linger();
    // Two commands, each of which is confirmed late.
    await this.time.advance(2 * LIMITS.commandConfirmMs);
    await this.#rest();
    commands.heal();
    commands.depart();
    await this.time.advance(PROBE_MS);
    await this.#rest();
    commands.check(this.census.has('log: failed to send commands; retrying'));
  }

  /** Everybody is what he should be, and stays so: while devices are there, when they have left, and when they are back. */
  async #checkPresence(presence: Presence): Promise<void> {
    const stay = async (): Promise<void> => {
      await this.time.advance(PROBE_MS);
      await this.#rest();
      await this.time.advance(PRESENCE_REST_MS);
      if (!this.#isSettled()) throw new Violation(`presence does not rest: ${this.#unsettled().join(', ')}`);
    };
    await stay();
    presence.leave();
    await stay();
    presence.wake();
    this.#sendLast();
    await stay();
    presence.check();
  }

  /** What is old is packed, and is read as before. */
  async #checkPacking(packing: Packing): Promise<void> {
    packing.crowd();
    await this.time.advance(PACKING_REST_MS);
    packing.end();
    await this.#rest();
    packing.readAll();
    await this.time.advance(SETTLE_MS);
    packing.check();
  }

  #checkWebhooks({ arrived, requests }: Receivers, objectIds: readonly string[]): void {
    const handlers = HANDLERS.map(({ name, owner, mode }) => ({
      name,
      mode,
      userId: String(USERS[owner]?.id),
      groupId: String(GROUPS[owner]),
    }));
    const refills = this.census.get('workers: history refilled') ?? 0;
    if (refills > REFILLS_MAX) throw new Violation(`the history was refilled ${refills} times`);
    const hasRefilled = refills > 0;
    checkAlarms(this.database.server, { rules: SIMULATED_RULES, objectIds, hasRefilled });
    checkWebhooks(this.database.server, { handlers, arrived, requests, objectIds, hasRefilled });
  }

  async #rest(): Promise<void> {
    const rounds = this.receivers === null ? SETTLE_ROUNDS : WORKER_SETTLE_ROUNDS;
    for (let round = 0; round < rounds && !this.#isSettled(); round++) {
      await this.time.advance(SETTLE_MS / 5);
      this.#check();
    }
    if (!this.#isSettled()) throw new Violation(`the world does not come to rest: ${this.#unsettled().join(', ')}`);
  }

  #isSettled(): boolean {
    return this.#unsettled().length === 0;
  }

  #unsettled(): string[] {
    const waiting = this.devices.filter(({ isIdle }) => !isIdle).map(({ objectId }) => `device ${objectId} waits`);
    const away = this.viewers.filter(({ client }) => !client.isLive && !client.isRefused);
    const working = this.receivers === null ? [] : this.#working();
    const open = this.commands?.unsettled() ?? this.presence?.unsettled() ?? this.packing?.unsettled() ?? [];
    return [...waiting, ...away.map(({ client }) => `${client.name} is not connected`), ...working, ...open];
  }

  /** What workers have not done yet. */
  #working(): string[] {
    const all = this.nodes.map(({ instance }) => instance?.workers?.stats());
    const sum = (pick: (stats: WorkerStats) => number): number =>
      all.reduce((total, stats) => total + (stats === undefined ? 0 : pick(stats)), 0);
    const { server } = this.database;
    const pending = server.committed('deliveries').filter(({ state }) => state === 'pending').length;
    const timed = server.committed('alarmStates').filter(({ due }) => isNumber(due)).length;
    const found = {
      'instances do not run': all.filter((stats) => stats === undefined).length,
      'partitions without an owner, or with two': LIMITS.partitions - sum(({ partitions }) => partitions),
      'partitions are behind': sum(({ behind }) => behind),
      'tasks wait': sum(({ tasks }) => tasks),
      'messages wait': pending,
      'alarms wait for their time': timed,
    };
    return Object.entries(found).flatMap(([text, count]) => (count === 0 ? [] : [`${count} ${text}`]));
  }
}

export interface RunOptions {
  /** Whether it fails when something real is used, which makes it slower. */
  readonly isGuarded?: boolean;
  readonly onTrace?: (trace: readonly string[]) => void;
}

/** Runs a plan; throws a violation, or an error that nothing caught. */
export function runPlan(plan: Plan, options: RunOptions = {}): Promise<Outcome> {
  return options.isGuarded ? guard(() => runWorld(plan, options)) : runWorld(plan, options);
}

async function runWorld(plan: Plan, { onTrace }: RunOptions): Promise<Outcome> {
  const world = new World({ instances: plan.instances, extra: extraOf(plan) });
  const restore = replaceClock(world.time.clock());
  const restoreDriver = replaceDriverTime();
  const restoreLimits = replaceLimits({ ...(plan.packing && PACKING_LIMITS), ...plan.limits });
  try {
    world.time.random = createRandom(plan.instances);
    await world.start();
    for (const step of stepsOf(plan)) await world.run(step);
    await world.settle();
  } finally {
    restoreLimits();
    restoreDriver();
    restore();
    onTrace?.(world.trace);
  }
  return { census: world.census, trace: world.trace, events: world.time.events };
}
