/** The service as a whole: it listens, waits for its database, opens, and ends in reverse order. */
import type { DestinationStream, Logger } from 'pino';
import { assemble } from './assembly.js';
import { keepSecret } from './auth/secret.js';
import type { Config } from './config.js';
import { startEmbedded } from './db/embedded.js';
import { toApiError } from './errors.js';
import { createDoor } from './http/door.js';
import { createLog } from './log.js';
import type { Change } from './model/change.js';
import { createLife, type Life, later } from './ops/life.js';
import { startWatch } from './ops/watch.js';

export interface ServiceOptions {
  readonly now?: () => number;
  /** Told of every change after the sockets were. */
  readonly onChange?: (change: Change) => void;
  /** Told of the first administrator's password as soon as it holds: a start that fails later must not lose it. */
  readonly onPassword?: (password: string) => void;
  /** Where log lines go; standard output when not given. */
  readonly logTo?: DestinationStream;
}

export interface Service {
  readonly url: string;
  /** Where health and metrics are told; null for nowhere. */
  readonly opsUrl: string | null;
  /** Where devices connect; null where they cannot, or not yet. */
  readonly mqttUrl: string | null;
  /** Whether it refuses every request until its database is there. */
  readonly isWaiting: boolean;
  /** Given once: when this start made the first administrator with a password of its own. */
  readonly generatedPassword: string | null;
  /** Resolves with the reason, or the error, when the service cannot go on by itself. */
  readonly failed: Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Starts every part, listening last. While the database is away the service listens all the same, refuses every request
 * with 503, and opens by itself when the database is there. A start that fails ends what it had begun.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const life = createLife();
  try {
    return { ...(await start(config, options, life)), stop: life.end };
  } catch (error) {
    await life.end();
    throw error;
  }
}

async function start(config: Config, options: ServiceOptions, life: Life): Promise<Omit<Service, 'stop'>> {
  const log = createLog(config.log, options.logTo);
  const watch = await startWatch(config.ops, config.load);
  life.push(() => watch.stop());
  const secrets = config.auth.secrets ?? [await keepSecret(config.dataFolder)];
  const { uri, failed } = await findDatabase(config, log, life);
  const door = createDoor(config.http);
  life.push(() => door.close());
  let generatedPassword: string | null = null;
  const onPassword = (password: string): void => {
    generatedPassword = password;
    options.onPassword?.(password);
  };
  const [refusing, refuse] = later<{ url: string; mqttUrl: string | null; isWaiting: boolean }>();
  const onAway = (error: unknown): void => {
    log.warn({ err: toApiError(error).cause }, 'the database is away: requests are refused until it answers');
    refuse(door.refuse().then((url) => ({ url, mqttUrl: null, isWaiting: true })));
  };
  const now = options.now ?? Date.now;
  const parts = { ...options, config, log, now, secrets, uri, door, watch, onPassword, onAway };
  const opened = assemble(parts, life).then(async ({ app, mqttUrl, vitals }) => {
    const url = await door.open(app);
    // Not before requests are answered: a balancer would send them.
    watch.opened(vitals);
    log.info({ url, mqttUrl }, 'listening');
    return { url, mqttUrl };
  });
  life.during(opened);
  const answering = opened.then((urls) => ({ ...urls, isWaiting: false }));
  const first = await Promise.race([answering, refusing]);
  const broken = new Promise((resolve) => opened.catch(resolve));
  return { ...first, opsUrl: watch.url, generatedPassword, failed: Promise.race([failed, broken]) };
}

/** The operator's MongoDB, or one of our own. */
async function findDatabase(
  config: Config,
  log: Logger,
  life: Life,
): Promise<{ uri: string; failed: Promise<string> }> {
  if (config.mongodbUri !== null) return { uri: config.mongodbUri, failed: new Promise(() => undefined) };
  const embedded = await startEmbedded({
    dataFolder: config.dataFolder,
    mongodBinary: config.mongodBinary,
    searchPath: config.searchPath,
    cacheFolder: config.cacheFolder,
    log: log.child({ room: 'embedded' }),
  });
  life.push(() => embedded.stop());
  return { uri: embedded.uri, failed: embedded.whenExited };
}
