/** Live events as server-sent events, read with fetch: it can send a token, which `EventSource` cannot. */
import { VigilError } from './client-error.js';
import type { EventSignal, LiveEvent, OpenEvents } from './event-source.js';
import { toQueryString } from './query.js';
import type { Open } from './requests.js';
import { linkController } from './waiting.js';

// The service sends something at least every 25 s.
const SILENCE_MS = 65_000;
const LONGEST_EVENT_CHARACTERS = 2 ** 26;

export function createServerSentEvents(open: Open, silenceMs = SILENCE_MS): OpenEvents {
  return async function* openEvents({ objects, events, since, signal }) {
    const { controller, release } = linkController(signal);
    const silence = new VigilError({ status: 0, message: 'The connection of live events is silent' });
    const withTimeout = async <T>(work: Promise<T>): Promise<T> => {
      const timer = setTimeout(() => controller.abort(silence), silenceMs);
      return work.finally(() => clearTimeout(timer));
    };
    try {
      const query = toQueryString({ objects, events, ...(since !== null && { since }) });
      const request = { method: 'GET', path: `/api/v1/events${query}`, isRepeatable: true, signal: controller.signal };
      const { body } = await withTimeout(open({ ...request, headers: { Accept: 'text/event-stream' } }));
      if (body === null) return;
      const reader = body.getReader();
      const decoder = new TextDecoder();
      const parse = createParser();
      for (;;) {
        const { done, value } = await withTimeout(reader.read()).catch(toLost);
        if (done) return;
        yield* parse(decoder.decode(value, { stream: true }));
      }
    } finally {
      release();
      controller.abort();
    }
  };
}

/** A connection that breaks while it is read is a TypeError in browsers and in Node.js. */
function toLost(error: Error): never {
  if (error instanceof VigilError) throw error;
  throw new VigilError({ status: 0, message: `The connection of live events is lost: ${error.message}`, cause: error });
}

/** Takes the stream piece by piece, and gives what is complete (WHATWG HTML, "Server-sent events"). */
export function createParser(): (text: string) => EventSignal[] {
  let rest = '';
  return (text) => {
    const searchedTo = Math.max(0, rest.length - 1);
    rest += text;
    const signals: EventSignal[] = [];
    let begin = 0;
    for (let end = rest.indexOf('\n\n', searchedTo); end !== -1; end = rest.indexOf('\n\n', begin)) {
      const signal = toSignal(rest.slice(begin, end));
      if (signal !== null) signals.push(signal);
      begin = end + 2;
    }
    rest = rest.slice(begin);
    if (rest.length > LONGEST_EVENT_CHARACTERS) {
      throw new VigilError({ status: 0, message: 'The stream of live events is not one of Vigil' });
    }
    return signals;
  };
}

function toSignal(block: string): EventSignal | null {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon !== -1) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const name = fields.get('event');
  const data = fields.get('data');
  const position = fields.get('id') ?? null;
  if (name !== undefined && data !== undefined) {
    return { kind: 'event', event: { event: name, data: JSON.parse(data), position } as LiveEvent };
  }
  if (position === null) return null;
  return { kind: fields.get('') === 'live' ? 'live' : 'position', position };
}
