/** Creates the log: one line per event, as JSON or for people, without secrets. */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { LIMITS } from '../core/limits.js';

const SECRETS = ['authorization', 'cookie', 'password', 'token', 'secret', 'uri'];

/** Lines are buffered: written at this size, after this delay, and when the process exits. */
const BUFFERING = { minLength: LIMITS.logWriteBytes, periodicFlush: LIMITS.logDelayMs };

/** `destination` receives the lines; standard output by default. */
export function createLogger(
  { level, format }: { level: string; format: 'pretty' | 'json' },
  destination?: DestinationStream,
): Logger {
  const options = {
    level,
    redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[secret]' },
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  const out = destination ?? pino.destination({ dest: 1, sync: false, ...BUFFERING });
  if (format === 'json') return pino(options, out);
  return pino(
    options,
    pretty({
      destination: out,
      colorize: false,
      singleLine: true,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid,hostname',
    }),
  );
}
