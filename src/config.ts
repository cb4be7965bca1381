/** The environment becomes a Config: names, defaults, checks; all problems are reported at once. Pure, but for `withFiles`. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { LIMITS } from './model/limits.js';
import { readDuration } from './model/time.js';

export interface Config {
  readonly production: boolean;
  readonly http: {
    readonly port: number;
    readonly host: string;
    /** Hops, or networks, in front of us whose `X-Forwarded-*` headers are believed. */
    readonly trustProxy: number | string[];
    readonly corsOrigins: readonly string[];
    /** How long requests are still taken after the service was told to stop. */
    readonly stopDelayMs: number;
  };
  /** Where health and metrics are told; null for nowhere. */
  readonly ops: { readonly port: number; readonly host: string } | null;
  /** How late the event loop may be, and how many points a caller has in a second; 0 for no limit. */
  readonly load: { readonly delayMs: number; readonly pointsPerSecond: number };
  /** Where devices connect; null for nowhere. */
  readonly mqtt: {
    readonly port: number;
    readonly host: string;
    /** Files in PEM form. */
    readonly tls: { readonly keyFile: string; readonly certFile: string } | null;
    /** Whether a balancer stands in front that says first whose each connection is. */
    readonly hasProxy?: boolean;
  } | null;
  /** A broker of the operator's; null for none. */
  readonly broker: { readonly url: string; readonly clientId: string | null } | null;
  /** A MongoDB of the operator's; null for the embedded one. */
  readonly mongodbUri: string | null;
  readonly mongodBinary: string | null;
  readonly dataFolder: string;
  readonly searchPath: string;
  /** How many days packets are kept whose model does not say; null for ever. */
  readonly retentionDays: number | null;
  /** Where a fetched mongod is kept. */
  readonly cacheFolder: string;
  readonly admin: { readonly login: string; readonly password: string | null };
  readonly auth: {
    /** The first signs, every one verifies; null for one that is generated and kept in the data folder. */
    readonly secrets: readonly string[] | null;
    readonly sessionLifetimeMs: number;
    readonly tokenLifetimeMs: number;
  };
  /** How many may listen to live events at the same time. */
  readonly live: { readonly perUser: number; readonly perAddress: number };
  readonly log: { readonly level: string; readonly format: 'pretty' | 'json' };
}

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
/** IANA, service "mqtt". */
const MQTT_PORT = 1_883;
const SECRET_CHARACTERS = 32;
const SECRET_VARIETY = 10;

const duration = (most: number, least = 1_000) =>
  z.string().transform((text, context) => {
    const durationMs = readDuration(text);
    if (durationMs !== null && durationMs >= least && durationMs <= most) return durationMs;
    context.addIssue(`expected a duration from ${least / 1_000}s on, such as 30m, 12h, "90 days" or milliseconds`);
    return z.NEVER;
  });

const port = z.coerce.number('expected a port').int().min(0).max(65_535);

const count = z.coerce.number('expected a whole number').int('expected a whole number').min(1).max(1_000_000);

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

const secrets = list.check((context) => {
  for (const secret of context.value) {
    if (secret.length >= SECRET_CHARACTERS && new Set(secret).size >= SECRET_VARIETY) continue;
    const message = `each secret needs at least ${SECRET_CHARACTERS} characters, not a few repeated ones`;
    context.issues.push({ code: 'custom', input: '', message });
  }
});

const origins = list.check((context) => {
  for (const origin of context.value) {
    if (URL.canParse(origin) && new URL(origin).origin === origin && origin !== 'null') continue;
    context.issues.push({ code: 'custom', input: '', message: 'expected whole origins, such as https://crm.example' });
  }
});

/** Every name that the service reads from its environment: docs/reference/configuration.md and .env.example list the same. */
const VARIABLES = z.object({
  PORT: port.default(8_080),
  HOST: z.string().default('127.0.0.1'),
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
  CORS_ORIGINS: origins.default([]),
  LIVE_CONNECTIONS_PER_USER: count.default(100),
  LIVE_CONNECTIONS_PER_ADDRESS: count.default(1_000),
  LOG_LEVEL: z.enum(LEVELS, `expected one of ${LEVELS.join(', ')}`).default('info'),
  LOG_FORMAT: z.enum(['pretty', 'json'], 'expected pretty or json').optional(),
});

export const CONFIG_NAMES: readonly string[] = Object.keys(VARIABLES.shape);

/** Reads and checks everything; throws one Error whose message lists every problem, a line each. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  // An empty variable is one that was not given: .env files and compose files write them so.
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
    problems.push('MQTT_TLS_KEY, MQTT_TLS_CERT: one needs the other');
  }
  const trustProxy = readTrustProxy(list.parse(given.TRUST_PROXY ?? ''));
  if (trustProxy === null) problems.push('TRUST_PROXY: expected a number of proxies, or their addresses or networks');
  if (result.data === undefined || trustProxy === null || problems.length > 0) {
    throw new Error(`The configuration is not usable:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
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
    searchPath: env.PATH ?? '',
    cacheFolder: defaultCacheFolder(env, homedir(), process.platform),
    admin: { login: values.ADMIN_LOGIN, password: values.ADMIN_PASSWORD ?? null },
    auth: {
      secrets: values.SECRET ?? null,
      sessionLifetimeMs: values.SESSION_LIFETIME,
      tokenLifetimeMs: values.TOKEN_LIFETIME,
    },
    live: { perUser: values.LIVE_CONNECTIONS_PER_USER, perAddress: values.LIVE_CONNECTIONS_PER_ADDRESS },
    log: { level: values.LOG_LEVEL, format: values.LOG_FORMAT ?? (production ? 'json' : 'pretty') },
  };
}

function toMqtt(values: z.output<typeof VARIABLES>): Config['mqtt'] {
  const { MQTT_TLS_KEY: keyFile, MQTT_TLS_CERT: certFile } = values;
  return {
    // Where any port does for HTTP, any does for MQTT.
    port: values.MQTT_PORT ?? (values.PORT === 0 ? 0 : MQTT_PORT),
    host: values.MQTT_HOST ?? values.HOST,
    tls: keyFile === undefined || certFile === undefined ? null : { keyFile, certFile },
    ...(values.MQTT_PROXY === '1' && { hasProxy: true }),
  };
}

/** `SECRET_FILE` names a file that holds `SECRET`, and so on: containers are handed what is secret in files. */
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

/** The folder of the user for what can be fetched again. */
export function defaultCacheFolder(env: NodeJS.ProcessEnv, homeFolder: string, platform: NodeJS.Platform): string {
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, 'vigil');
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homeFolder, 'AppData', 'Local'), 'vigil', 'cache');
  if (platform === 'darwin') return join(homeFolder, 'Library', 'Caches', 'vigil');
  return join(homeFolder, '.cache', 'vigil');
}

// A number of hops, or addresses; never `true`, which would believe whatever a client writes.
function readTrustProxy(parts: readonly string[]): number | string[] | null {
  const [first] = parts;
  if (first === undefined || first === 'false') return 0;
  if (parts.length === 1 && /^\d{1,2}$/.test(first)) return Number(first);
  const known = /^(loopback|linklocal|uniquelocal|[0-9a-f.:]+(\/\d{1,3})?)$/i;
  return parts.every((part) => known.test(part)) ? [...parts] : null;
}
