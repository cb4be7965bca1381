/**
 * Packed history in a world. Whoever reads packets, by any instance and while anything fails, finds every packet that was stored by then,
 * once, in order and byte for byte as it was stored, whether it is a row or in a bucket.
 */
import { BSON, type Document } from 'mongodb';
import type { Logger } from 'pino';
import { toApiError } from '../../src/core/errors.js';
import { unpack } from '../../src/packed/unpack.js';
import { startPacking } from '../../src/packets/packing.js';
import { BUCKETS, toBucket } from '../../src/packets/store/buckets.js';
import { LATEST_FIRST, type PacketReading } from '../../src/packets/store/query.js';
import { countPackets, findFirstPacket, findNamedPackets, readPackets } from '../../src/packets/store/reader.js';
import { clock } from '../../src/platform/clock.js';
import { packetIdIn } from '../../src/platform/mongo/bson/packet-key.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { NO_PACKING_METRICS } from '../../src/platform/ops/packing-metrics.js';
import { toNumber } from './database/compare.js';
import type { SimulatedDatabase } from './database/network.js';
import type { SimulatedServer } from './database/server.js';
import type { Device } from './device.js';
import type { SmallLimits } from './limits.js';
import type { Node } from './node.js';
import { fail } from './oracles.js';
import { between } from './random.js';
import type { PackingStep } from './steps.js';
import type { VirtualTime } from './virtual-time.js';

/** Rows of this age are packed. */
export const PACK_AFTER_MS = 5_000;
/** Small buckets, and passes soon after each other. What a step waits for is as long as always. */
export const PACKING_LIMITS: SmallLimits = { bucketPackets: 40, leaseMs: 6_000, packingPauseMs: 5_000 };
/** Longer than two passes, and what they wait for. */
export const PACKING_REST_MS = 150_000;

/** What a reader asks for. */
export const READINGS = ['all', 'latest first', 'page', 'latest', 'count', 'named'] as const;
export type Reading = (typeof READINGS)[number];
const PAGE = { skip: 3, limit: 10 };

/** How many commits meet a crowd, how late these commits are, and how many packets each device sends again. */
const CROWDS = 3;
const CROWD_MS = 6;
const CROWD_PACKETS = 20;

/** What an instance has for it. */
export interface PackingParts {
  /** The packets as they are read; of a count only the number. Throws 503. */
  read(objectId: string, reading: Reading, named: readonly string[]): Promise<readonly Uint8Array[] | number>;
}

export function startPackingParts(database: Database, log: Logger): PackingParts {
  startPacking({ database, packAfterMs: PACK_AFTER_MS, log, metrics: NO_PACKING_METRICS, now: clock.now });
  return {
    async read(objectId, reading, named) {
      const query = { objectIds: [objectId] };
      if (reading === 'count') return countPackets(database, query);
      if (reading === 'named') {
        const names = named.map((packetId) => ({ objectId, packetId }));
        return findNamedPackets(database, names, { fields: null });
      }
      const sort = reading === 'all' ? null : LATEST_FIRST;
      if (reading === 'latest') {
        const latest = await findFirstPacket(database, { ...query, sort, fields: null });
        return latest === null ? [] : [latest];
      }
      const whole: PacketReading = { ...query, sort, fields: null, ...(reading === 'page' && PAGE) };
      const found: Uint8Array[] = [];
      for await (const { documents } of readPackets(database, whole)) found.push(...documents);
      return found;
    },
  };
}

interface Read {
  readonly device: Device;
  readonly reading: Reading;
  readonly named: readonly string[];
  /** How many entries a majority had when it was asked for. */
  readonly from: number;
  readonly found: readonly Uint8Array[] | number;
  /** Nothing was stored or packed meanwhile. */
  readonly isCalm: boolean;
}

export interface PackingOptions {
  readonly time: VirtualTime;
  readonly database: SimulatedDatabase;
  readonly devices: readonly Device[];
  readonly nodes: readonly Node[];
  readonly note: (name: string, details?: string) => void;
}

export class Packing {
  readonly #options: PackingOptions;
  readonly #reads: Read[] = [];
  /** Whether everything had time to be packed. */
  #isOver = false;

  constructor(options: PackingOptions) {
    this.#options = options;
  }

  perform(step: PackingStep): void {
    const { devices, nodes, time } = this.#options;
    const device = devices[step.device % devices.length] as Device;
    if (step.kind === 'backlog') device.send(step.count, Math.floor(time.nowMs) - step.agoMs, step.apartMs);
    else if (step.kind === 'repeat') device.repeat(step.count);
    else this.#read(nodes[step.instance % nodes.length] as Node, device, step.reading);
  }

  /** At the next commits, readers ask every instance for every object, and devices send again, before and after the rows become buckets. */
  crowd(): void {
    const { database, nodes, time } = this.#options;
    for (const { incarnation } of nodes) {
      const lateMs = between(time.random, 0, CROWD_MS);
      const act = (): void => this.#comeTogether();
      const commits = { owner: incarnation, at: 'commit', moment: 'before', left: 0, times: CROWDS } as const;
      database.strike({ ...commits, act, isLost: false, lateMs });
    }
  }

  #comeTogether(): void {
    const { devices, nodes, note, time } = this.#options;
    note('packing: crowd');
    for (const device of devices) {
      device.repeat(CROWD_PACKETS);
      for (const node of nodes) {
        const reading = READINGS[Math.floor(time.random() * READINGS.length)] as Reading;
        this.#read(node, device, reading);
      }
    }
  }

  end(): void {
    this.#isOver = true;
  }

  /** Every reading of every object by every instance, while nothing happens. */
  readAll(): void {
    const { devices, nodes } = this.#options;
    for (const node of nodes)
      for (const device of devices) for (const reading of READINGS) this.#read(node, device, reading, true);
  }

  #read(node: Node, device: Device, reading: Reading, isCalm = false): void {
    const { time, database, note } = this.#options;
    const parts = node.instance?.packing ?? null;
    if (parts === null) return;
    const { acknowledged, objectId } = device;
    const named = [...acknowledged].filter(() => time.random() < 0.2);
    time.after(between(time.random, 0.2, 2), node.incarnation, () => {
      const from = database.server.majority;
      parts.read(objectId, reading, named).then(
        (found) => {
          note(`reader: ${reading}`);
          this.#reads.push({ device, reading, named, from, found, isCalm });
        },
        (error: unknown) => {
          const { status } = toApiError(error);
          note(`reader: ${status}`);
          if (status !== 503) time.onError(error);
        },
      );
    });
  }

  /** Buckets that wait do so for a while: only then they must not any more. */
  unsettled(): string[] {
    if (!this.#isOver) return [];
    const pending = this.#options.database.server.committed(BUCKETS).filter(({ isPending }) => isPending).length;
    return pending === 0 ? [] : [`${pending} buckets wait`];
  }

  check(): void {
    const { server } = this.#options.database;
    if (server.committed(BUCKETS).length > 0) this.#options.note('packing: buckets');
    for (const read of this.#reads) checkRead(server, read);
  }
}

/** Packets in buckets that count, by their `_id`s. Throws for one that is stored twice. */
export function packedIn(server: SimulatedServer): Map<string, Document> {
  const rows = new Set(server.committed('packets').map(({ _id }) => packetIdIn(_id)));
  const packed = new Map<string, Document>();
  for (const bucket of server.committed(BUCKETS)) {
    if (bucket.isPending) continue;
    for (const row of unpack(toBucket(Buffer.from(BSON.serialize(bucket))))) {
      const packet = BSON.deserialize(row, { promoteLongs: false, promoteBuffers: false });
      const id = packetIdIn(packet._id);
      if (rows.has(id) || packed.has(id)) fail(`packet ${id} is stored twice`);
      packed.set(id, packet);
    }
  }
  return packed;
}

interface Stored {
  readonly index: number;
  readonly bytes: Buffer;
  readonly place: readonly [time: number, stamp: number];
}

const placeOf = ({ time, _ts }: Document): Stored['place'] => [toNumber(time), toNumber(_ts)];
const compare = (one: Stored['place'], other: Stored['place']): number => one[0] - other[0] || one[1] - other[1];

/** The packets of an object as they were stored first. */
function storedOf({ oplog }: SimulatedServer, objectId: string): Map<string, Stored> {
  const stored = new Map<string, Stored>();
  for (const [index, { collection, before, after, id }] of oplog.entries()) {
    if (collection !== 'packets' || before !== null || after === null || String(after._oid) !== objectId) continue;
    const packetId = packetIdIn(id as never);
    if (!stored.has(packetId))
      stored.set(packetId, { index, bytes: Buffer.from(BSON.serialize(after)), place: placeOf(after) });
  }
  return stored;
}

function checkRead(server: SimulatedServer, { device, reading, named, from, found, isCalm }: Read): void {
  const { objectId, sent } = device;
  const stored = storedOf(server, objectId);
  const what = `the packets of ${objectId} (${reading})`;
  const before = [...stored].filter(([, { index }]) => index < from);
  if (typeof found === 'number') {
    if (found < before.length || found > (isCalm ? before.length : sent.length))
      fail(`${what} are ${before.length}, and ${found} were counted`);
    return;
  }
  const known = new Set(sent);
  const ids = found.map((bytes) => {
    const id = packetIdIn(BSON.deserialize(bytes, { promoteBuffers: false })._id);
    if (!known.has(id)) fail(`${what} have ${id}, which was never sent`);
    const same = stored.get(id);
    // What no majority had may be lost, and stored anew.
    if (same !== undefined && same.index < from && !same.bytes.equals(bytes))
      fail(`${what} have ${id} otherwise than it was stored`);
    return id;
  });
  const got = new Set(ids);
  if (got.size < ids.length) fail(`${what} have a packet twice`);
  if (reading === 'named') {
    for (const id of named) if (!got.has(id)) fail(`${what} lack ${id}, which was acknowledged`);
    return;
  }
  const sign = reading === 'all' ? 1 : -1;
  const places = found.map((bytes) => placeOf(BSON.deserialize(bytes)));
  for (const [nth, place] of places.entries())
    if (nth > 0 && sign * compare(places[nth - 1] as Stored['place'], place) > 0) fail(`${what} are not in order`);
  const first = before.map(([, { place }]) => place).sort((one, other) => sign * compare(one, other));
  if (reading === 'latest') {
    const [latest] = first;
    const [got] = places;
    if (latest !== undefined && (got === undefined || compare(got, latest) < 0)) fail(`${what} have an older one`);
  } else if (reading !== 'page') {
    for (const [id] of before) if (!got.has(id)) fail(`${what} lack ${id}, which was stored before`);
  } else if (isCalm) {
    const wanted = first.slice(PAGE.skip, PAGE.skip + PAGE.limit);
    if (JSON.stringify(wanted) !== JSON.stringify(places)) fail(`${what} are other ones`);
  }
}
