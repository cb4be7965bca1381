/** Commands in a world: users who send and end them, the devices that carry them out, and the steps that disturb both. */
import { askNode, CommandDevice, type DeviceMode } from './command-device.js';
import { checkCommands, type Looked, type Sent } from './command-oracles.js';
import type { SimulatedDatabase } from './database/network.js';
import type { Node } from './node.js';
import { placesOf } from './oracles.js';
import { between } from './random.js';
import type { CommandStep } from './steps.js';
import type { VirtualTime } from './virtual-time.js';

/** How many commands each device gets at the end, and within which time. */
const PROBES = 4;
const PROBES_MS = 100;

export interface Sender {
  readonly userId: string;
  readonly tokenId: string;
  readonly credential: string;
}

export interface CommandsOptions {
  readonly time: VirtualTime;
  readonly database: SimulatedDatabase;
  readonly objectIds: readonly string[];
  readonly senders: readonly Sender[];
  /** Of a user who sees all objects throughout. */
  readonly deviceCredential: string;
  readonly findNode: () => Node | null;
  readonly removeToken: (tokenId: string) => void;
  readonly note: (name: string, details?: string) => void;
}

export class Commands {
  readonly #options: CommandsOptions;
  readonly #devices: CommandDevice[];
  readonly #sent: Sent[] = [];
  readonly #looked: Looked[] = [];
  /** Nothing is slow any more: what an instance looks at is what it knows. */
  #isCalm = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
    const { time, database, findNode, note, deviceCredential: credential } = options;
    const committed = (): number => database.server.majority;
    this.#devices = options.objectIds.map(
      (objectId, nth) =>
        new CommandDevice({ time, objectId, isHttp: nth % 2 === 1, credential, findNode, committed, note }),
    );
  }

  start(): void {
    for (const device of this.#devices) device.connect();
  }

  perform(step: CommandStep): void {
    const device = this.#devices[step.device % this.#devices.length] as CommandDevice;
    const sender = this.#options.senders[step.user % this.#options.senders.length] as Sender;
    if (step.kind === 'order') for (let nth = 0; nth < (step.count ?? 1); nth++) this.#send(sender, device, step.ttlMs);
    else if (step.kind === 'look') this.#look(sender, device);
    else if (step.kind === 'end') this.#end(sender);
    else if (step.kind === 'bar') this.#options.removeToken(sender.tokenId);
    else if (step.kind === 'drop') device.drop(step.learnsMs);
    else if (step.kind === 'behave') this.#change(device, step.mode);
  }

  #change(device: CommandDevice, mode: DeviceMode): void {
    if (mode === 'answers') device.heal();
    else device.mode = mode;
  }

  /** Once: it would be another command. */
  #send({ userId, tokenId, credential }: Sender, { objectId }: CommandDevice, ttlMs: number): void {
    const { time, findNode, note } = this.#options;
    const node = findNode();
    const parts = node?.instance?.commands ?? null;
    if (node === null || node.instance === null || parts === null) return;
    const { applied } = node.instance;
    const command = `c${this.#sent.length}`;
    const sent: Sent = { command, userId, tokenId, objectId, ttlMs, applied: '', status: null, commandId: '' };
    this.#sent.push(sent);
    const query = { ttl: String(ttlMs) };
    askNode(time, node, {
      run() {
        sent.applied = applied();
        return parts.call({ route: 'sendCommand', credential, objectId, more: { command }, query, body: { command } });
      },
      done(answer) {
        sent.status = answer?.status ?? null;
        sent.commandId = answer?.location.split('/').at(-1) ?? '';
        note(`sender: ${sent.status ?? 'no answer'}`, command);
      },
    });
  }

  /** A user waits for commands of an object. */
  #look({ userId, tokenId, credential }: Sender, { objectId }: CommandDevice): void {
    const { time, findNode, note, database } = this.#options;
    const node = findNode();
    const { instance = null } = node ?? {};
    const parts = instance?.commands ?? null;
    if (node === null || instance === null || parts === null) return;
    const query = { status: 'queued', wait: '60' };
    askNode(time, node, {
      async run() {
        const answer = await parts.call({ route: 'listCommandsOfObject', credential, objectId, query });
        return { answer, known: instance.appliedBefore() };
      },
      done: (got) => {
        if (got === null) return;
        const { answer, known } = got;
        note(`looker: ${answer.status}`);
        if (answer.status !== 200 || !this.#isCalm) return;
        const commandIds = (answer.body as { _id: string }[]).map(({ _id }) => _id);
        if (commandIds.length > 0) note('looker: got commands');
        this.#looked.push({ userId, tokenId, objectId, commandIds, known, committed: database.server.majority });
      },
    });
  }

  /** A user says that the last command failed, so that no device carries it out. */
  #end({ credential }: Sender): void {
    const { time, findNode, note } = this.#options;
    const last = this.#sent.findLast(({ commandId }) => commandId !== '');
    const node = findNode();
    const parts = node?.instance?.commands ?? null;
    if (node === null || parts === null || last === undefined) return;
    const { objectId, commandId: commandID } = last;
    const body = { status: 'failed', result: 'not needed any more' };
    askNode(time, node, {
      run: () => parts.call({ route: 'endCommand', credential, objectId, more: { commandID }, body }),
      done: (answer) => note(`sender: ended ${answer?.status ?? 'no answer'}`),
    });
  }

  /** The devices work again and come again. */
  heal(): void {
    for (const device of this.#devices) device.heal();
  }

  /** Two commands for each device over MQTT, which confirms the first one when the second one is under way. */
  linger(): void {
    const { deviceCredential: credential } = this.#options;
    for (const device of this.#devices) {
      if (device.isHttp) continue;
      device.mode = 'late';
      for (let nth = 0; nth < 2; nth++) this.#send({ userId: '', tokenId: '', credential }, device, 86_400_000);
    }
  }

  /** A few more commands for each device, shortly after each other, which nothing disturbs; whoever sends them sees all of them. */
  probe(): void {
    this.#isCalm = true;
    const { deviceCredential: credential, time } = this.#options;
    const send = (device: CommandDevice): void =>
      this.#send({ userId: '', tokenId: '', credential }, device, 86_400_000);
    for (const device of this.#devices) {
      for (let nth = 0; nth < PROBES; nth++) time.after(between(time.random, 0, PROBES_MS), null, () => send(device));
    }
  }

  /** Each device over MQTT goes with a command that it has not confirmed. */
  depart(): void {
    const { deviceCredential: credential, database } = this.#options;
    const objects = new Set(database.server.committed('objects').map(({ _id }) => String(_id)));
    for (const device of this.#devices) {
      if (device.isHttp || !objects.has(device.objectId)) continue;
      device.departAfter(1);
      this.#send({ userId: '', tokenId: '', credential }, device, 86_400_000);
    }
  }

  /** What has not come to its end. Who is there no more answers nothing. */
  unsettled(): string[] {
    const { server } = this.#options.database;
    const objects = new Set(server.committed('objects').map(({ _id }) => String(_id)));
    const devices = new Map(this.#devices.map((device) => [device.objectId, device]));
    const open = server
      .committed('commands')
      .filter(({ status }) => !['done', 'failed', 'expired'].includes(status))
      .filter(({ object }) => objects.has(String(object)) || devices.get(String(object))?.isHttp === false);
    const departed = new Set(this.#devices.filter((one) => one.hasDeparted).map(({ objectId }) => objectId));
    const unreported = this.#devices.flatMap(({ objectId, isHttp, reported }) =>
      isHttp && !objects.has(objectId) ? [] : [...reported.values()].filter(({ answer }) => answer === null),
    );
    // What a device had not confirmed waits for its next connection.
    const wrong = open.filter(({ object, status }) => !departed.has(String(object)) || status !== 'queued');
    return [
      ...wrong.map(({ command, status }) => `command ${command} is ${status}`),
      ...unreported.map(() => 'a result is not stored'),
    ];
  }

  check(hasFailed: boolean): void {
    const { server } = this.#options.database;
    const { objectIds, note } = this.#options;
    checkCommands(server, {
      sent: this.#sent,
      looked: this.#looked,
      devices: this.#devices,
      objectIds,
      places: placesOf(server.oplog),
      note,
      hasFailed,
    });
  }
}
