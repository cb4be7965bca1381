/** The client of the interface, for browsers and Node.js: everything the service offers, typed. */
import type { EventOptions, EventStream } from './events.js';
import { createEventStream } from './events.js';
import type { Caller, CommandFields, Routes, SecurityEventFields, Stores, TokenAnswer } from './generated/api.js';
import { createObjectsClient, type ObjectsClient } from './objects.js';
import { createPolling } from './polling.js';
import { createOpen, createSend, type RequestSettings } from './requests.js';
import { createRouteRequest, type RouteRequest } from './routes.js';
import { createServerSentEvents } from './server-sent-events.js';
import { type AddedStore, type CallOptions, createStoreClient, type StoreClient } from './stores.js';
import { type Credentials, createTokenSource, type Issued } from './token-source.js';
import { createWebSockets, type WebSocketClass } from './web-socket.js';

export { VigilError } from './client-error.js';
export type { EventName, LiveEvent } from './event-source.js';
export type { EventOptions, EventState, EventStream, EventTransport } from './events.js';
export type * from './generated/api.js';
export type { Listing, PageSize } from './listing.js';
export type {
  AddedPackets,
  AddPacketsOptions,
  CommandQuery,
  NewPacket,
  ObjectsClient,
  SendOptions,
} from './objects.js';
export type { RouteInput, RouteRequest } from './routes.js';
export type { AddedStore, CallOptions, ListMeta, ListQuery, StoreClient } from './stores.js';

export type { WebSocketClass, WebSocketLike } from './web-socket.js';

export interface ClientOptions extends Credentials {
  /** The address of the service; by default the server of the page. */
  readonly url?: string;
  /** Whether a browser sends its cookies: `include` for a page of another origin. */
  readonly credentials?: 'omit' | 'same-origin' | 'include';
  /** How often a request is tried that is safe to repeat (reading, and packets with an `_id`); 4 by default. */
  readonly attempts?: number;
  /** The wait before the second attempt, and before reconnecting; it doubles each time. 500 ms by default. */
  readonly retryMs?: number;
  /** The time for one answer; 30 s by default. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
  /** For Node.js 20, which has none: the class of the package `ws`. */
  readonly WebSocket?: WebSocketClass;
  readonly onRetry?: RequestSettings['onRetry'];
}

type StoreClients = {
  readonly [Name in Exclude<keyof Stores, 'objects' | 'commands' | 'audit'>]: StoreClient<Stores[Name]>;
};

/** A store that can only be read. */
type Journal<T> = Pick<
  StoreClient<{ entity: T; fields: T; create: never; change: never; created: never }>,
  'get' | 'find' | 'list' | 'meta'
>;

export interface AuthClient {
  /** Opens a session: the browser keeps its cookie. */
  logIn(login: string, password: string, options?: CallOptions): Promise<void>;
  /** Ends the session, or revokes the token. */
  logOut(options?: CallOptions): Promise<void>;
  /** The current user, with `credentials` and `scopes`. */
  whoAmI(options?: CallOptions): Promise<Caller>;
  issueToken(request: Routes['POST /api/v1/auth/token']['body'], options?: CallOptions): Promise<TokenAnswer>;
}

export interface VigilClient extends StoreClients {
  readonly auth: AuthClient;
  readonly objects: ObjectsClient;
  readonly commands: Journal<CommandFields>;
  readonly audit: Journal<SecurityEventFields>;
  /** A store of your own. */
  store<T extends object>(name: string): StoreClient<AddedStore<T>>;
  /** Live events: `for await (const event of client.events())`. */
  events(options?: EventOptions): EventStream;
  /** Any route, by its name in the OpenAPI document. */
  readonly request: RouteRequest;
  /** The raw answer to a path with its query, for what is read while it arrives. Throws a `VigilError` for all but success. */
  open(
    path: string,
    options?: CallOptions & { readonly headers?: Readonly<Record<string, string>> },
  ): Promise<Response>;
}

const STORES = [
  'models',
  'users',
  'groups',
  'roles',
  'tokens',
  'geofences',
  'labels',
  'views',
  'schedules',
  'handlers',
  'sources',
  'stores',
] as const;

export function createClient(options: ClientOptions = {}): VigilClient {
  const settings = toSettings(options);
  const send = createSend(settings);
  const open = createOpen(settings);
  const transports = {
    'server-sent-events': createServerSentEvents(open),
    polling: createPolling(send),
    websocket: createWebSockets({ ...settings, WebSocket: options.WebSocket ?? findWebSocket() }),
  };
  const stores = STORES.map((name) => [name, createStoreClient(send, name)]);
  const request = createRouteRequest(send);
  return {
    ...(Object.fromEntries(stores) as StoreClients),
    auth: {
      logIn: async (login, password, more) =>
        void (await request('POST /api/v1/auth', { body: { login, password }, ...more })),
      logOut: async (more = {}) => void (await request('DELETE /api/v1/auth', more)),
      whoAmI: (more = {}) => request('GET /api/v1/auth', more),
      issueToken: (body, more) => request('POST /api/v1/auth/token', { body, ...more }),
    },
    objects: createObjectsClient(send),
    commands: createStoreClient(send, 'commands') as VigilClient['commands'],
    audit: createStoreClient(send, 'audit') as VigilClient['audit'],
    store: (name) => createStoreClient(send, name),
    events: (more = {}) =>
      createEventStream({ open: transports[more.transport ?? 'server-sent-events'], retryMs: options.retryMs }, more),
    request,
    open: (path, more) => open({ method: 'GET', path, isRepeatable: true, ...more }),
  };
}

const findWebSocket = (): WebSocketClass | undefined => (globalThis as { WebSocket?: WebSocketClass }).WebSocket;

function toSettings(options: ClientOptions): RequestSettings {
  const base = {
    url: (options.url ?? '').replace(/\/+$/, ''),
    // Called as a method of something else, the one of a browser throws.
    fetch: options.fetch ?? ((...args: Parameters<typeof fetch>) => fetch(...args)),
    credentials: options.credentials ?? 'same-origin',
    attempts: options.attempts ?? 4,
    timeoutMs: options.timeoutMs ?? 30_000,
    retryMs: options.retryMs ?? 500,
    onRetry: options.onRetry ?? (() => undefined),
  };
  const anonymous = { current: async () => null, renew: async () => false };
  const logIn = createSend({ ...base, tokens: anonymous });
  const issue = async (): Promise<Issued> => {
    const request = { method: 'POST', path: '/api/v1/auth/token', body: options.login };
    const { body } = await logIn({ ...request, isRepeatable: true });
    return body as Issued;
  };
  return { ...base, tokens: createTokenSource(options, issue) };
}
