/** Starts and stops the service: listens, waits for the database, opens, and shuts down in reverse order. */
import type { DestinationStream, Logger } from 'pino';
import { getOrCreateSecret } from './accounts/signing-secret.js';
import type { Config } from './config.js';
import { createContext } from './context.js';
import type { Change } from './core/change.js';
import { toApiError } from './core/errors.js';
import { createEntry } from './platform/http/server/entry.js';
import { createLogger } from './platform/logger.js';
import { startEmbedded } from './platform/mongo/embedded/start.js';
import { createDeferred, createLifecycle, type Lifecycle } from './platform/ops/lifecycle.js';
import { startOpsServer } from './platform/ops/server.js';
import { createRefusalReport } from './platform/refused-connections.js';

export interface ServiceOptions {
  readonly now?: () => number;
  /** Called for every change, after all consumers. */
  readonly onChange?: (change: Change) => void;
  /** Called with the first administrator's password as soon as it is stored, so that a start that fails later does not lose it. */
  readonly onPassword?: (password: string) => void;
  /** The destination of log lines; standard output by default. */
  readonly logTo?: DestinationStream;
}

export interface Service {
  readonly url: string;
  /** The URL of health and metrics; null when they are disabled. */
  readonly opsUrl: string | null;
  /** The URL for devices; null when MQTT is disabled, or while the service waits for its database. */
  readonly mqttUrl: string | null;
  /** Whether it refuses every request until its database is available. */
  readonly isWaiting: boolean;
  /** Set only by the start that created the first administrator with a generated password. */
  readonly generatedPassword: string | null;
  /** Resolves with the reason or the error when the service cannot continue. */
  readonly failed: Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Starts all components and listens last. While the database is unavailable, the service listens, refuses every request with 503,
 * and opens as soon as the database is available. A failed start shuts down the components that it has started.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const lifecycle = createLifecycle();
  try {
    return { ...(await start(config, options, lifecycle)), stop: lifecycle.end };
  } catch (error) {
    await lifecycle.end();
    throw error;
  }
}

async function start(config: Config, options: ServiceOptions, lifecycle: Lifecycle): Promise<Omit<Service, 'stop'>> {
  const log = createLogger(config.log, options.logTo);
  const ops = await startOpsServer(config.ops, config.load);
  lifecycle.onShutdown(() => ops.stop());
  const secrets = config.auth.secrets ?? [await getOrCreateSecret(config.dataFolder)];
  const { uri, failed } = await findDatabase(config, log, lifecycle);
  const reportRefusals = createRefusalReport({ onRefused: ops.metrics.connectionRefused, log });
  const entry = createEntry({
    ...config.http,
    connectionsPerAddress: config.connectionsPerAddress,
    onConnectionRefused: reportRefusals('http'),
  });
  lifecycle.onShutdown(() => entry.close());
  let generatedPassword: string | null = null;
  const onPassword = (password: string): void => {
    generatedPassword = password;
    options.onPassword?.(password);
  };
  const [refusing, refuse] = createDeferred<{ url: string; mqttUrl: string | null; isWaiting: boolean }>();
  const onUnavailable = (error: unknown): void => {
    log.warn({ err: toApiError(error).cause }, 'database unavailable: refusing requests until it answers');
    refuse(entry.refuse().then((url) => ({ url, mqttUrl: null, isWaiting: true })));
  };
  const now = options.now ?? Date.now;
  const deps = { ...options, config, log, now, secrets, uri, entry, ops, onPassword, onUnavailable };
  const opened = createContext(deps, lifecycle).then(async ({ app, mqttUrl, healthChecks }) => {
    const url = await entry.open(app);
    // Only now: a balancer sends requests as soon as the service is ready.
    ops.opened(healthChecks);
    log.info({ url, mqttUrl }, 'listening');
    return { url, mqttUrl };
  });
  lifecycle.track(opened);
  const answering = opened.then((urls) => ({ ...urls, isWaiting: false }));
  const first = await Promise.race([answering, refusing]);
  const broken = new Promise((resolve) => opened.catch(resolve));
  return { ...first, opsUrl: ops.url, generatedPassword, failed: Promise.race([failed, broken]) };
}

/** Returns the operator's MongoDB, or starts the embedded one. */
async function findDatabase(
  config: Config,
  log: Logger,
  lifecycle: Lifecycle,
): Promise<{ uri: string; failed: Promise<string> }> {
  if (config.mongodbUri !== null) return { uri: config.mongodbUri, failed: new Promise(() => undefined) };
  const embedded = await startEmbedded({
    dataFolder: config.dataFolder,
    mongodBinary: config.mongodBinary,
    searchPath: config.searchPath,
    cacheFolder: config.cacheFolder,
    log: log.child({ module: 'embedded' }),
  });
  lifecycle.onShutdown(() => embedded.stop());
  return { uri: embedded.uri, failed: embedded.whenExited };
}
