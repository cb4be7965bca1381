/** Live events in short requests, one after the other: for networks that close WebSockets and hold back streams. */
import type { EventSignal, LiveEvent, OpenEvents } from './event-source.js';
import { toQueryString } from './query.js';
import type { Send } from './requests.js';
import { pause } from './waiting.js';

interface EventPage {
  readonly events: readonly LiveEvent[];
  readonly position: string;
  /** What was lost before the first event. */
  readonly gap?: object;
}

const PAUSE_MS = 2_000;
/** The page that follows a longer one is requested at once, since it may contain events that were missed. */
const SHORT_PAGE_EVENTS = 100;

/** No request waits for an event, so that none of the few connections of a browser is occupied. */
export function createPolling(send: Send, pauseMs = PAUSE_MS): OpenEvents {
  return async function* openEvents({ objects, events, since, signal }) {
    for (let position = since; !signal.aborted; ) {
      const query = toQueryString({ objects, events, ...(position !== null && { since: position }) });
      // The stream of events repeats failed requests itself.
      const { body } = await send({ method: 'GET', path: `/api/v1/events${query}`, isRepeatable: false, signal });
      const page = body as EventPage;
      yield* toSignals(page);
      position = page.position;
      if (page.events.length >= SHORT_PAGE_EVENTS) continue;
      yield { kind: 'live', position };
      await pause(pauseMs, signal);
    }
  };
}

function* toSignals({ events, position, gap }: EventPage): Generator<EventSignal> {
  if (gap !== undefined) yield { kind: 'event', event: { event: 'gap', data: gap, position: null } as LiveEvent };
  for (const event of events) yield { kind: 'event', event };
  yield { kind: 'position', position };
}
