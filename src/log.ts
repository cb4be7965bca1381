/** The log: one JSON line per event, or the same for a person; what is secret never reaches it. */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { LIMITS } from './model/limits.js';

const SECRETS = ['authorization', 'cookie', 'password', 'token', 'secret', 'uri'];

/** Lines go out together: when there are so many, at the latest after this time, and when the process ends. */
const GATHERED = { minLength: LIMITS.logWriteBytes, periodicFlush: LIMITS.logDelayMs };

/** `destination` takes the lines; standard output where none is given. */
export function createLog(
  { level, format }: { level: string; format: 'pretty' | 'json' },
  destination?: DestinationStream,
): Logger {
  const options = {
    level,
    redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[secret]' },
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  const out = destination ?? pino.destination({ dest: 1, sync: false, ...GATHERED });
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
