/** The log: one JSON line per event, or the same for a person; what is secret never reaches it. */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

const SECRETS = ['authorization', 'cookie', 'password', 'token', 'secret', 'uri'];

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
  // Lines that come while one is being written go out together.
  const out = destination ?? pino.destination({ dest: 1, sync: false });
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
