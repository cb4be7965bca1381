/** Converts the environment into a Config, with defaults and checks. Reports all problems at once. Pure except for `withFiles`. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import {
  basePath,
  count,
  duration,
  durationOrNever,
  list,
  mailFrom,
  pageOrigins,
  port,
  secrets,
  tilesFile,
  webAddress,
  webOrigins,
} from './config-values.js';
import { LIMITS } from './core/limits.js';
import { GEOCODER_KINDS } from './geocoder/adapters.js';
import type { GeocoderSettings } from './geocoder/geocoder.js';
import type { ConfiguredMap } from './settings/map.js';
import { type Network, parseNetworks } from './webhooks/address-policy.js';

export interface Config {
  readonly production: boolean;
  readonly http: {
    readonly port: number;
    readonly host: string;
    /** The path of another site that Vigil is served below: `/vigil`, or empty. */
    readonly basePath: string;
    /** The number of trusted proxies, or their networks: their `X-Forwarded-*` headers are used. */
    readonly trustProxy: number | string[];
    readonly corsOrigins: readonly string[];
    /** How long requests are still accepted after the signal to stop. */
    readonly stopDelayMs: number;
  };
  /** The address of health checks and metrics; null for none. */
  readonly ops: { readonly port: number; readonly host: string } | null;
  /** The maximum delay of the event loop, and the rate limit of a caller; 0 for no limit. */
  readonly load: { readonly delayMs: number; readonly pointsPerSecond: number };
  /** The address for devices; null for none. */
  readonly mqtt: {
    readonly port: number;
    readonly host: string;
    /** Files in PEM form. */
    readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
    /** Whether every connection begins with a header of the PROXY protocol. */
    readonly hasProxy?: boolean;
  } | null;
  /** The operator's own broker; null for none. */
  readonly broker: { readonly url: string; readonly clientId: string | null } | null;
  /** The operator's own MongoDB; null for the embedded one. */
  readonly mongodbUri: string | null;
  readonly mongodBinary: string | null;
  readonly dataFolder: string;
  readonly searchPath: string;
  /** How long packets are kept whose model has no `retentionDays`; null for ever. */
  readonly retentionDays: number | null;
  /** The age at which packets are packed; null for never. */
  readonly packAfterMs: number | null;
  /** How far the time of a packet may be ahead of the clock of the service. */
  readonly packetAheadMs: number;
  /** The folder of downloaded mongod binaries. */
  readonly cacheFolder: string;
  readonly admin: { readonly login: string; readonly password: string | null };
  readonly auth: {
    /** The first one signs, all verify. Null: one is generated and kept in the data folder. */
    readonly secrets: readonly string[] | null;
    readonly sessionLifetimeMs: number;
    readonly tokenLifetimeMs: number;
  };
  /** The maximum number of connections of a client address over HTTP, and over MQTT. */
  readonly connectionsPerAddress: number;
  /** The maximum number of concurrent subscribers of live events. */
  readonly live: { readonly perUser: number; readonly perAddress: number };
  /** Private networks that webhooks may be sent to. */
  readonly webhookNetworks: readonly Network[];
  /** The operator's own map beneath the objects of the console. */
  readonly map: ConfiguredMap;
  /** What finds addresses; null for none. */
  readonly geocoder: GeocoderSettings | null;
  /** Over what users are notified; null for what the operator has not set up. */
  readonly notifications: {
    readonly mail: { readonly url: string; readonly from: string } | null;
    /** `url` is the address of the Bot API, without a slash at its end. */
    readonly telegram: { readonly token: string; readonly url: string } | null;
    /** Where people open the console, without a slash at its end. */
    readonly publicUrl: string | null;
  };
  readonly log: { readonly level: string; readonly format: 'pretty' | 'json' };
}

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
/** IANA, service "mqtt". */
const MQTT_PORT = 1_883;
/** For requests beside live events, and for devices. */
const CONNECTIONS_BESIDE_LIVE = 1_000;
/** Every environment variable of the service. docs/reference/configuration.md and .env.example list the same names. */
const VARIABLES = z.object({
  PORT: port.default(8_080),
  HOST: z.string().default('127.0.0.1'),
  BASE_PATH: basePath.default(''),
  OPS_PORT: port.optional(),
  OPS_HOST: z.string().default('127.0.0.1'),
  STOP_DELAY: duration(LIMITS.stopDelayMaxMs, 0).default(1_000),
  OVERLOAD_DELAY: duration(LIMITS.overloadDelayMaxMs, 0).default(1_000),
  RATE_LIMIT: z.coerce.number('expected a whole number').int('expected a whole number').min(0).max(1e9).default(50_000),
  MQTT_PORT: port.optional(),
  MQTT_HOST: z.string().optional(),
  MQTT_URL: z
    .string()
    .regex(/^(mqtts?|wss?):\/\//, 'expected mqtt:// or mqtts://')
    .optional(),
  MQTT_CLIENT_ID: z.string().max(LIMITS.idCharacters).optional(),
  MQTT_PROXY: z.enum(['0', '1'], 'expected 1, or 0').optional(),
  MQTT_TLS_KEY: z.string().optional(),
  MQTT_TLS_CERT: z.string().optional(),
  DATA_DIR: z.string().default('./data'),
  MONGODB_URI: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\//, 'expected mongodb:// or mongodb+srv://')
    .optional(),
  MONGOD_BINARY: z.string().optional(),
  RETENTION_DAYS: z.coerce
    .number('expected a number of days')
    .int('expected whole days')
    .min(1)
    .max(LIMITS.retentionDays)
    .optional(),
  PACK_AFTER: durationOrNever(LIMITS.packAfterMaxMs, LIMITS.packAfterMinMs).default(null),
  PACKET_TIME_AHEAD: duration(LIMITS.packetAheadMaxMs).default(LIMITS.packetAheadMs),
  ADMIN_LOGIN: z.string().max(LIMITS.nameCharacters).default('admin'),
  ADMIN_PASSWORD: z
    .string()
    .min(LIMITS.passwordCharactersMin, `needs at least ${LIMITS.passwordCharactersMin} characters`)
    .max(LIMITS.passwordCharactersMax, `at most ${LIMITS.passwordCharactersMax} characters`)
    .optional(),
  SECRET: secrets.optional(),
  SESSION_LIFETIME: duration(LIMITS.sessionLifetimeMaxMs).default(12 * 3_600_000),
  TOKEN_LIFETIME: duration(LIMITS.tokenLifetimeMaxMs).default(24 * 3_600_000),
  TRUST_PROXY: list.optional(),
  CORS_ORIGINS: pageOrigins.default([]),
  CONNECTIONS_PER_ADDRESS: count.optional(),
  LIVE_CONNECTIONS_PER_USER: count.default(100),
  LIVE_CONNECTIONS_PER_ADDRESS: count.default(1_000),
  WEBHOOK_NETWORKS: z
    .string()
    .default('')
    .refine((text) => parseNetworks(text) !== null, 'expected networks, such as 10.0.0.0/8')
    .transform((text) => parseNetworks(text) ?? []),
  MAP_STYLE_URL: z.url({ protocol: /^https?$/, error: 'expected http:// or https://' }).optional(),
  MAP_ORIGINS: webOrigins.default([]),
  MAP_TILES: tilesFile.optional(),
  GEOCODER_URL: webAddress.optional(),
  GEOCODER_KIND: z.enum(GEOCODER_KINDS, `expected one of ${GEOCODER_KINDS.join(', ')}`).default('nominatim'),
  GEOCODER_QUERY: z
    .string()
    .max(LIMITS.mapUrlCharacters)
    .regex(/^[^\s?#]+$/, 'expected a query, such as api_key=…')
    .optional(),
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      error: 'expected smtp:// or smtps://, such as smtps://user:password@mail.example:465',
    })
    .optional(),
  MAIL_FROM: mailFrom.optional(),
  TELEGRAM_TOKEN: z
    .string()
    .regex(/^[\w:-]{1,256}$/, 'expected the token of a bot')
    .optional(),
  TELEGRAM_URL: webAddress.default('https://api.telegram.org'),
  PUBLIC_URL: webAddress.optional(),
  LOG_LEVEL: z.enum(LEVELS, `expected one of ${LEVELS.join(', ')}`).default('info'),
  LOG_FORMAT: z.enum(['pretty', 'json'], 'expected pretty or json').optional(),
});

export const CONFIG_NAMES: readonly string[] = Object.keys(VARIABLES.shape);

/** Parses and checks the environment. Throws one Error whose message lists every problem on its own line. */
export function parseConfig(env: NodeJS.ProcessEnv): Config {
  // An empty variable counts as absent: .env files and compose files write it like this.
  const given = Object.fromEntries(
    CONFIG_NAMES.filter((name) => (env[name] ?? '').trim() !== '').map((name) => [name, env[name]?.trim()]),
  );
  const result = VARIABLES.safeParse(given);
  const problems = result.error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
  const production = env.NODE_ENV === 'production';
  if (production && given.MONGODB_URI !== undefined && given.SECRET === undefined) {
    problems.push('SECRET: required in production with MONGODB_URI, the same for every instance');
  }
  if ((given.MQTT_TLS_KEY === undefined) !== (given.MQTT_TLS_CERT === undefined)) {
    problems.push('MQTT_TLS_KEY, MQTT_TLS_CERT: set both or neither');
  }
  if ((given.SMTP_URL === undefined) !== (given.MAIL_FROM === undefined)) {
    problems.push('SMTP_URL, MAIL_FROM: set both or neither');
  }
  const trustProxy = parseTrustProxy(list.parse(given.TRUST_PROXY ?? ''));
  if (trustProxy === null) problems.push('TRUST_PROXY: expected a number of proxies, or their addresses or networks');
  if (result.data === undefined || trustProxy === null || problems.length > 0) {
    throw new Error(`The configuration is invalid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
  return toConfig(result.data, { env, production, trustProxy });
}

function toConfig(
  values: z.output<typeof VARIABLES>,
  { env, production, trustProxy }: { env: NodeJS.ProcessEnv; production: boolean; trustProxy: number | string[] },
): Config {
  return {
    production,
    http: {
      port: values.PORT,
      host: values.HOST,
      basePath: values.BASE_PATH,
      trustProxy,
      corsOrigins: values.CORS_ORIGINS,
      stopDelayMs: values.STOP_DELAY,
    },
    ops: values.OPS_PORT === undefined ? null : { port: values.OPS_PORT, host: values.OPS_HOST },
    load: { delayMs: values.OVERLOAD_DELAY, pointsPerSecond: values.RATE_LIMIT },
    mqtt: env.MQTT_PORT?.trim() === '' ? null : toMqtt(values),
    broker: values.MQTT_URL === undefined ? null : { url: values.MQTT_URL, clientId: values.MQTT_CLIENT_ID ?? null },
    mongodbUri: values.MONGODB_URI ?? null,
    mongodBinary: values.MONGOD_BINARY ?? null,
    dataFolder: values.DATA_DIR,
    retentionDays: values.RETENTION_DAYS ?? null,
    packAfterMs: values.PACK_AFTER,
    packetAheadMs: values.PACKET_TIME_AHEAD,
    searchPath: env.PATH ?? '',
    cacheFolder: defaultCacheFolder(env, homedir(), process.platform),
    admin: { login: values.ADMIN_LOGIN, password: values.ADMIN_PASSWORD ?? null },
    auth: {
      secrets: values.SECRET ?? null,
      sessionLifetimeMs: values.SESSION_LIFETIME,
      tokenLifetimeMs: values.TOKEN_LIFETIME,
    },
    // Clients of live events that are permitted need a connection each, and their pages some more.
    connectionsPerAddress:
      values.CONNECTIONS_PER_ADDRESS ??
      Math.max(LIMITS.connectionsPerAddress, values.LIVE_CONNECTIONS_PER_ADDRESS + CONNECTIONS_BESIDE_LIVE),
    live: { perUser: values.LIVE_CONNECTIONS_PER_USER, perAddress: values.LIVE_CONNECTIONS_PER_ADDRESS },
    webhookNetworks: values.WEBHOOK_NETWORKS,
    map: { styleUrl: values.MAP_STYLE_URL ?? null, origins: values.MAP_ORIGINS, tilesFile: values.MAP_TILES ?? null },
    geocoder: toGeocoder(values),
    notifications: toNotifications(values),
    log: { level: values.LOG_LEVEL, format: values.LOG_FORMAT ?? (production ? 'json' : 'pretty') },
  };
}

function toGeocoder(values: z.output<typeof VARIABLES>): Config['geocoder'] {
  const { GEOCODER_URL: url, GEOCODER_KIND: kind, GEOCODER_QUERY: query = null } = values;
  return url === undefined ? null : { kind, url, query };
}

function toNotifications(values: z.output<typeof VARIABLES>): Config['notifications'] {
  const { SMTP_URL: url, MAIL_FROM: from, TELEGRAM_TOKEN: token } = values;
  return {
    mail: url === undefined || from === undefined ? null : { url, from },
    telegram: token === undefined ? null : { token, url: values.TELEGRAM_URL },
    publicUrl: values.PUBLIC_URL ?? null,
  };
}

function toMqtt(values: z.output<typeof VARIABLES>): Config['mqtt'] {
  const { MQTT_TLS_KEY: keyFile, MQTT_TLS_CERT: certFile } = values;
  return {
    // If HTTP uses any free port, MQTT does as well.
    port: values.MQTT_PORT ?? (values.PORT === 0 ? 0 : MQTT_PORT),
    host: values.MQTT_HOST ?? values.HOST,
    tls: keyFile === undefined || certFile === undefined ? null : { keyFile, certFile },
    ...(values.MQTT_PROXY === '1' && { hasProxy: true }),
  };
}

/** Reads `SECRET` from the file that `SECRET_FILE` names, and so on: containers receive secrets as files. */
export function withFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const held = CONFIG_NAMES.filter((name) => env[`${name}_FILE`]).map((name) => {
    try {
      return [name, readFileSync(String(env[`${name}_FILE`]), 'utf8').trim()];
    } catch (error) {
      throw new Error(`${name}_FILE cannot be read: ${(error as Error).message}`);
    }
  });
  return { ...env, ...Object.fromEntries(held) };
}

/** The user's cache folder: its content can be downloaded again. */
export function defaultCacheFolder(env: NodeJS.ProcessEnv, homeFolder: string, platform: NodeJS.Platform): string {
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, 'vigil');
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homeFolder, 'AppData', 'Local'), 'vigil', 'cache');
  if (platform === 'darwin') return join(homeFolder, 'Library', 'Caches', 'vigil');
  return join(homeFolder, '.cache', 'vigil');
}

// A number of proxies, or addresses; never `true`, which would trust headers of any client.
function parseTrustProxy(proxies: readonly string[]): number | string[] | null {
  const [first] = proxies;
  if (first === undefined || first === 'false') return 0;
  if (proxies.length === 1 && /^\d{1,2}$/.test(first)) return Number(first);
  const known = /^(loopback|linklocal|uniquelocal|[0-9a-f.:]+(\/\d{1,3})?)$/i;
  return proxies.every((part) => known.test(part)) ? [...proxies] : null;
}
