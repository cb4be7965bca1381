/** The entrance of sources: stores what a request contains, each sample at the object of its device, and says what could not be. */
import { stringify } from 'node:querystring';
import type { PassedOn, Receipt } from '../../commands/network-store.js';
import { ApiError, badRequest, notFound, toApiError } from '../../core/errors.js';
import type { Json, JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import type { DataType, Declarations } from '../../core/model.js';
import { PLACE_NAMES } from '../../core/position-fields.js';
import { identifyingMs } from '../../packets/device-time.js';
import type { Ingest } from '../../packets/ingest.js';
import type { ModelFinder } from '../../packets/models.js';
import {
  contentOf,
  inOrder,
  type Message,
  parseItem,
  type Refusal,
  refusalError,
  toBatch,
} from '../../packets/packet.js';
import { othersStored } from '../../packets/reasons.js';
import type { RefusedPackets } from '../../packets/refused-packets.js';
import type { Source } from '../../packets/source.js';
import { parseInPieces, withoutByteOrderMark } from '../../platform/http/large-body.js';
import { inBatches } from '../../platform/mongo/driver/bulk-queue.js';
import { mapInSlices } from '../../platform/slices.js';
import { type Digest, packetIdOf } from '../dedup-id.js';
import type { AnswerCommands } from './answer-commands.js';
import {
  type Answer,
  type DeviceReceipt,
  type Item,
  invalidJson,
  parameter,
  parseOrNull,
  type Readout,
  type Sample,
  type SourceRequest,
  withPlaces,
} from './kind.js';
import { explainKind, KINDS } from './kinds.js';
import { toOwnTracksAnswer } from './owntracks.js';
import type { RefusedPayloads } from './refused-payloads.js';
import type { SourceRecord } from './source-store.js';
import type { Targets } from './targets.js';
import type { Origin, ReportRefused, ReportUnknownDevice } from './unknown-devices.js';

export interface EntranceDeps {
  readonly targets: Targets;
  readonly models: ModelFinder;
  readonly ingest: Ingest;
  /** Derives the `_id` of packets, so that what is sent again is stored once. */
  readonly digest: Digest;
  readonly refusedPackets: RefusedPackets;
  readonly refusedPayloads: RefusedPayloads;
  readonly reportUnknownDevice: ReportUnknownDevice;
  readonly reportRefused: ReportRefused;
  /** Called with the address of a device whose packets were stored, if its source takes commands. */
  readonly noteCommandAddress: (source: SourceRecord, objectId: string, address: string) => void;
  /** Stores what a system says of a command that it has taken. */
  readonly noteReceipt: (passedOn: PassedOn, receipt: Receipt) => Promise<void>;
  /** Takes the commands that go out with the answer to devices. */
  readonly takeCommands: AnswerCommands['take'];
  /** Called when packets of a source were stored. */
  readonly noteUse: (sourceId: string) => void;
  /** Counts each sample that is not stored. */
  readonly onRefused: () => void;
  readonly now: () => number;
}

/** What a request stored. */
export interface Outcome {
  readonly count: number;
  readonly refused: readonly Refusal[];
  /** Null for the usual answer. */
  readonly answer: Answer | null;
  /** To be called if the answer does not go out: the commands in it wait again. Null without commands. */
  readonly returnCommands: (() => void) | null;
}

/** A refused sample, with the device that it names. */
interface Refused extends Refusal {
  readonly device: string | null;
  /** The answer if all samples are refused like this: what may be stored if it is sent again. */
  readonly error?: ApiError;
  /** Of one of several samples: what can be stored later by `POST /objects/:id/packets`, since the sender takes it as done. */
  readonly packet?: JsonObject;
}

/** Stores a request of a source; resolves when all that can be stored is durable. Throws 400, 404, 413, 429, 503. */
export type Receive = (source: SourceRecord, request: SourceRequest, origin: Origin) => Promise<Outcome>;

export const createReceive =
  (deps: EntranceDeps): Receive =>
  async (source, request, origin) => {
    const readout = await read(deps, source, request, origin);
    const { items, receipt, answer } = readout;
    if (receipt) await takeReceipt(deps, source, receipt);
    const { found, missing } = await findTargets(deps, source, items, origin);
    const stored = await storeAll(deps, found);
    const count = stored.reduce((sum, one) => sum + one.count, 0);
    const refused = missing
      .concat(...stored.map((one) => one.refused))
      .toSorted((one, other) => one.index - other.index);
    if (refused.length > 0) keep(deps, source, request, withPackets(refused, items), origin);
    if (count > 0) deps.noteUse(source._id);
    if (source.commandUrl !== null) noteAddresses(deps, source, found);
    const error = count === 0 ? explainAll(refused, { ...readout, isSingle: items.length === 1 }) : null;
    if (error !== null) throw error;
    const outcome = { count, refused: toRefusals(refused), answer, returnCommands: null };
    if (!source.map.givesCommands) return outcome;
    // Of the devices that the request comes from: OwnTracks sends what is of one device.
    const to = found.map(({ target: { objectId } }) => ({ objectId, sourceId: source._id }));
    const { commands, returnAll } = await deps.takeCommands(to);
    if (commands.length === 0) return outcome;
    return { ...outcome, answer: toOwnTracksAnswer(commands), returnCommands: returnAll };
  };

async function takeReceipt(deps: EntranceDeps, source: SourceRecord, receipt: DeviceReceipt): Promise<void> {
  const target = await deps.targets.find(source, receipt.devices);
  if (target !== null) await deps.noteReceipt({ objectId: target.objectId, sourceId: source._id }, receipt);
}

function noteAddresses(deps: EntranceDeps, source: SourceRecord, found: readonly Found[]): void {
  for (const { target, samples } of found) {
    const address = samples.at(-1)?.commandAddress;
    if (address !== undefined) deps.noteCommandAddress(source, target.objectId, address);
  }
}

/** The answer where nothing is stored; null where the sender must not send it again. */
function explainAll(
  refused: readonly Refused[],
  { isSingle, resends, sharesQueue }: Pick<Readout, 'resends' | 'sharesQueue'> & { readonly isSingle: boolean },
): ApiError | null {
  const [first] = refused;
  if (first === undefined) return null;
  // A device that somebody adds is stored the next time it sends.
  const isForNow = first.error !== undefined && (!sharesQueue || first.error.status === 429);
  if (isForNow && refused.every(({ error }) => error?.status === first.error?.status)) return first.error;
  if (resends) return null;
  return isSingle ? badRequest(first.reason) : refusalError(toRefusals(refused), 0);
}

/** Of several samples, each with its packet. */
function withPackets(refused: readonly Refused[], items: readonly Item[]): readonly Refused[] {
  if (items.length === 1) return refused;
  return refused.map((one) => {
    const item = items[one.index ?? 0];
    return item === undefined || 'reason' in item ? one : { ...one, packet: item.packet };
  });
}

const toRefusals = (refused: readonly Refused[]): Refusal[] => refused.map(({ index, reason }) => ({ index, reason }));

/** Keeps a payload that cannot be read, and says which kind it looks like. */
async function read(deps: EntranceDeps, source: SourceRecord, request: SourceRequest, origin: Origin) {
  try {
    const readout = KINDS[source.kind].read(await parseLarge(request));
    const device = parameter(request, 'device');
    const items = await mapInSlices(readout.items, (item) => named(item, device));
    if (items.length > 0 && items.every(isLost)) refuseOther(source, request);
    const receipt = readout.receipt && named(readout.receipt, device);
    return { ...readout, items, receipt };
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error.status === 500) throw thrown;
    const other = explainKind(parseOrNull(request), source.kind);
    const reason = other === null ? error.message : `${error.message}; ${other}`;
    const { endless } = KINDS[source.kind];
    if (other === null && error.status === 400 && endless?.isMeant(request))
      return { items: [{ reason }], receipt: null, answer: endless.answer, resends: true };
    keep(deps, source, request, [{ index: 0, reason, device: null }], origin);
    throw other === null ? error : badRequest(reason);
  }
}

const isLost = (item: Item): boolean => 'reason' in item || item.devices.length === 0;

/** Throws a 400 for what looks like another kind; its caller says which. */
function refuseOther({ kind }: SourceRecord, request: SourceRequest): void {
  if (explainKind(parseOrNull(request), kind) !== null) throw badRequest('nothing of it can be read');
}

const LIST_OR_OBJECT = /^(?:\xef\xbb\xbf)?[ \t\r\n]*[[{]/;

/** A large body is parsed in pieces; a form is not JSON. Throws a 400. */
async function parseLarge(request: SourceRequest): Promise<SourceRequest> {
  const { body } = request;
  if (body.length <= LIMITS.bigBodyBytes || !LIST_OR_OBJECT.test(body.toString('latin1', 0, 100))) return request;
  try {
    return { ...request, parsed: await parseInPieces(body) };
  } catch (error) {
    throw error instanceof SyntaxError ? invalidJson(withoutByteOrderMark(body)) : error;
  }
}

/** A URL may name the device: some senders cannot. */
const named = <T extends object>(item: T, device: string | undefined): T =>
  device !== undefined && 'devices' in item ? { ...item, devices: [device] } : item;

/** The samples of one object. */
interface Found {
  readonly target: Source;
  readonly samples: (Sample & { readonly index: number })[];
}

const NO_DEVICE = 'the packet names no device';

/** The samples by object, and those without one. */
async function findTargets(
  deps: EntranceDeps,
  source: SourceRecord,
  items: readonly Item[],
  origin: Origin,
): Promise<{ readonly found: readonly Found[]; readonly missing: readonly Refused[] }> {
  const found = new Map<string, Found>();
  const missing: Refused[] = [];
  const targets = await findAll(deps, source, items);
  for (const [index, item] of items.entries()) {
    if ('reason' in item) {
      missing.push({ index, reason: item.reason, device: null });
      continue;
    }
    const [device = null] = item.devices;
    const target = device === null ? null : targets.get(nameOf(item));
    if (target === null) missing.push({ index, reason: NO_DEVICE, device, error: badRequest(NO_DEVICE) });
    else if (target === undefined) {
      missing.push({ index, reason: 'unknown device', device, error: notFound() });
      if (device !== null) deps.reportUnknownDevice(source, device, origin);
    } else if (target instanceof ApiError) missing.push({ index, reason: target.message, device, error: target });
    else {
      const same = found.get(target.objectId) ?? { target, samples: [] };
      same.samples.push({ ...item, index });
      found.set(target.objectId, same);
    }
  }
  return { found: [...found.values()], missing };
}

const nameOf = ({ devices }: Sample): string => devices.join('\n');

/** The objects of all devices, or why one cannot be created now; nothing for unknown devices. */
async function findAll(
  { targets }: EntranceDeps,
  source: SourceRecord,
  items: readonly Item[],
): Promise<ReadonlyMap<string, Source | ApiError>> {
  const samples = new Map(items.flatMap((item) => ('reason' in item ? [] : [[nameOf(item), item] as const])));
  const all = new Map<string, Source | ApiError>();
  const missing: string[] = [];
  const look = async ([name, { devices }]: readonly [string, Sample]): Promise<void> => {
    const target = await targets.find(source, devices);
    if (target !== null) all.set(name, target);
    else if (devices.length > 0) missing.push(name);
  };
  await Promise.all([...samples].map(look));
  if (!source.registers) return all;
  for (const some of inBatches(missing, LIMITS.itemsPerTurn)) {
    const register = async (name: string): Promise<void> => {
      const made = await targets.register(source, samples.get(name)?.devices[0] ?? '').catch(toLimit);
      if (made !== null) all.set(name, made);
    };
    await Promise.all(some.map(register));
  }
  return all;
}

/** A limit of one source costs only the devices beyond it. */
function toLimit(error: unknown): ApiError {
  if (error instanceof ApiError && error.status === 429) return error;
  throw error;
}

/** What was stored of the samples of one object. */
interface Stored {
  readonly count: number;
  readonly refused: readonly Refused[];
}

/** Prepares the samples in slices, and stores those of all objects together. */
async function storeAll(deps: EntranceDeps, found: readonly Found[]): Promise<readonly Stored[]> {
  const nowMs = deps.now();
  const models = [...new Set(found.map(({ target }) => target.modelId))];
  const declared = new Map(
    await Promise.all(models.map(async (id) => [id, await deps.models.declarationsOf(id)] as const)),
  );
  const all = found.flatMap(({ target, samples }) => samples.map((sample) => ({ target, ...sample })));
  const parsed = await mapInSlices(all, ({ target, packet, index, omitsZeros }) => {
    const own = declared.get(target.modelId) as Declarations;
    const given = withPlaces(omitsZeros ? withZeros(packet, own) : packet);
    const message = parseItem(given, index, own, nowMs);
    return 'reason' in message ? message : withId(deps, target, message, packet);
  });
  let at = 0;
  const stored = await mapInSlices(found, ({ target, samples }) => {
    const own = parsed.slice(at, at + samples.length);
    at += samples.length;
    const done = store(deps, target, own, nowMs);
    // It may reject before the others have begun.
    done.catch(() => undefined);
    return done;
  });
  return Promise.all(stored);
}

async function store(
  deps: EntranceDeps,
  target: Source,
  parsed: readonly (Message | Refusal)[],
  nowMs: number,
): Promise<Stored> {
  const { messages, refused, incomplete } = toBatch(parsed);
  const ingested = await deps.ingest(target, messages);
  const all = inOrder(refused.concat(ingested.refused));
  const common = { time: nowMs, via: 'http', topic: null } as const;
  const partial = incomplete.map((one) => ({ ...one, reason: othersStored(one.reason) }));
  deps.refusedPackets.record(
    target.objectId,
    inOrder([...all, ...partial])
      .slice(-LIMITS.refusedPerObject)
      .map((one) => ({ ...common, ...one })),
  );
  const { ownId: device } = target;
  return { count: ingested.packets.length, refused: all.map((one) => ({ ...one, device })) };
}

const ZEROS: Readonly<Partial<Record<DataType, Json>>> = { number: 0, boolean: false, string: '' };

/** Adds the parameters of the model that are missing, unless they are coordinates. */
function withZeros(packet: JsonObject, { parameters }: Declarations): JsonObject {
  const zeros = [...parameters].flatMap(([name, type]) => {
    const zero = PLACE_NAMES.includes(name) || name.includes('.') ? undefined : ZEROS[type];
    return zero === undefined ? [] : [[name, zero]];
  });
  return { ...Object.fromEntries(zeros), ...packet };
}

/** What has a time is identified by it and by its content: senders send again what was not answered. */
function withId(deps: EntranceDeps, { objectId }: Source, message: Message, packet: JsonObject): Message {
  const timeMs = identifyingMs(message, deps.now());
  if (message.id !== null || timeMs === null) return message;
  const content = deps.digest(Buffer.from(`${objectId}\n${contentOf(packet)}`));
  return { ...message, id: packetIdOf(timeMs, content) };
}

function keep(
  deps: EntranceDeps,
  source: SourceRecord,
  request: SourceRequest,
  refused: readonly Refused[],
  origin: Origin,
): void {
  const time = deps.now();
  const { body, query } = request;
  const payload = body.length > 0 ? body.toString('utf8', 0, LIMITS.refusedPayloadBytes) : stringify(query);
  for (const _ of refused) deps.onRefused();
  // Unknown devices are recorded by their names.
  const reasons = refused.flatMap(({ reason, error }) => (error?.status === 404 ? [] : [reason]));
  if (reasons.length > 0) deps.reportRefused(source, reasons, origin);
  const last = refused.slice(-LIMITS.refusedPerSource);
  deps.refusedPayloads.record(
    source._id,
    last.map(({ index, reason, device, packet }) => {
      const own = packet === undefined ? payload : JSON.stringify(packet);
      return { time, device, index, reason, payload: own };
    }),
  );
}
