/** Control objects: beside what every store has, their packets, their commands and their model. */
import type { CommandFields, Message, Packet, PacketFields, Refusal, Routes, Stores } from './generated/api.js';
import { createListing, type Listing } from './listing.js';
import { type Query, toPath, toQueryString } from './query.js';
import type { Send } from './requests.js';
import { type CallOptions, createStoreClient, type ListMeta, type ListQuery, type StoreClient } from './stores.js';

/** A packet to send. With an `_id` of its own it is stored once, however often it is sent. */
export type NewPacket = Message;

export interface SendOptions extends CallOptions {
  /** The lifetime of the command: a duration such as `10 min`, or milliseconds. */
  readonly ttl?: string | number;
}

export interface AddPacketsOptions extends CallOptions {
  /** Whether no packet is stored if one cannot be stored: the call then throws. */
  readonly atomic?: boolean;
}

/** What became of packets that were sent together. */
export interface AddedPackets {
  /** How many are stored. */
  readonly count: number;
  /** Those that cannot be stored, by their place among those sent. */
  readonly refused: readonly Refusal[];
  /** Those that are stored without some of their fields. */
  readonly incomplete: readonly Refusal[];
}

export interface CommandQuery extends ListQuery {
  readonly status?: readonly NonNullable<CommandFields['status']>[];
}

type Series = Routes['GET /api/v1/objects/{id}/series'];
type Refused = Routes['GET /api/v1/objects/{id}/refused'];

/** Objects are found by their `_id` or by their own `id`. */
export interface ObjectsClient extends StoreClient<Stores['objects']> {
  /** The packets of an object, the oldest first. */
  packets<const Asked extends ListQuery>(
    id: string,
    query?: Asked,
  ): Listing<Asked extends { only: readonly string[] } ? PacketFields : Packet>;
  /** How many packets there are, the first and the last. */
  packetsMeta(id: string, query?: Omit<ListQuery, 'limit' | 'offset' | 'pageSize'>): Promise<ListMeta<PacketFields>>;
  /** The history of parameters in buckets, in columns. */
  series(id: string, query: Series['query'] & CallOptions): Promise<Series['answer']>;
  packet(id: string, packetId: string, options?: CallOptions): Promise<Packet>;
  /**
   * Stores packets, and resolves when they are durable; throws if none of them can be stored. Packets that all have an `_id` are
   * sent again where that helps.
   */
  addPackets(id: string, packets: readonly NewPacket[], options?: AddPacketsOptions): Promise<AddedPackets>;
  /** The last packets and messages that could not be stored, and why. */
  refusedPackets(id: string, options?: CallOptions): Promise<Refused['answer']>;
  /** Creates a command, and resolves with its `_id` in the journal, the store `commands`. */
  send(id: string, command: string, params?: object, options?: SendOptions): Promise<{ _id: string }>;
  /** The commands of an object, in the order of their execution. */
  commands(id: string, query?: CommandQuery): Listing<CommandFields>;
  /** The model of an object, with its declarations as plain lists. */
  model(id: string, options?: CallOptions): Promise<Routes['GET /api/v1/objects/{id}/model']['answer']>;
}

export function createObjectsClient(send: Send): ObjectsClient {
  const pathOf = (id: string, rest: string, more: Record<string, string> = {}): string =>
    toPath(`/api/v1/objects/{id}/${rest}`, { id, ...more });
  const read = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
    (await send({ method: 'GET', path, isRepeatable: true, signal })).body as T;
  const list = <T>(path: string, { signal, pageSize, ...query }: ListQuery = {}): Listing<T> =>
    createListing(send, { path, query: query as Query & { limit?: number }, pageSize, signal });
  return {
    ...createStoreClient<Stores['objects']>(send, 'objects'),
    packets: (id, query) => list(pathOf(id, 'packets'), query),
    packetsMeta: async (id, { signal, ...query } = {}) =>
      read(pathOf(id, 'packets') + toQueryString({ ...(query as Query), meta: true }), signal),
    series: async (id, { signal, ...query }) => read(pathOf(id, 'series') + toQueryString(query), signal),
    packet: async (id, packet, { signal } = {}) => read(pathOf(id, 'packets/{packet}', { packet }), signal),
    async addPackets(id, packets, { atomic, signal } = {}) {
      const isRepeatable = packets.every(({ _id }) => typeof _id === 'string');
      const path = pathOf(id, 'packets') + toQueryString({ atomic });
      const { body } = await send({ method: 'POST', path, body: packets, isRepeatable, signal });
      const { count, refused = [], incomplete = [] } = body as Partial<AddedPackets> & { count: number };
      return { count, refused, incomplete };
    },
    refusedPackets: async (id, { signal } = {}) => read(pathOf(id, 'refused'), signal),
    async send(id, command, params = {}, { ttl, signal } = {}) {
      const path = pathOf(id, 'commands/{command}', { command }) + toQueryString({ ttl });
      const { headers } = await send({ method: 'POST', path, body: params, isRepeatable: false, signal });
      return { _id: headers.get('location')?.split('/').at(-1) ?? '' };
    },
    commands: (id, query) => list(pathOf(id, 'commands'), query),
    model: async (id, { signal } = {}) => read(pathOf(id, 'model'), signal),
  };
}
