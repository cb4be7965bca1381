/** Live events without loss: after a lost connection they continue at the last position. */
import { VigilError } from './client-error.js';
import type { EventName, LiveEvent, OpenEvents } from './event-source.js';
import { linkController, pause, toBackoffMs } from './waiting.js';

/** `live`: events arrive as they happen. `waiting`: the connection is lost, the next attempt follows. */
export type EventState = 'connecting' | 'live' | 'waiting' | 'closed';

export type EventTransport = 'server-sent-events' | 'websocket' | 'polling';

export interface EventOptions {
  /** `_id`s or own ids; all objects by default. */
  readonly objects?: readonly string[];
  /** Names of events; all by default. */
  readonly events?: readonly EventName[];
  /** A position: begins with the events after it. */
  readonly since?: string | null;
  readonly signal?: AbortSignal;
  /**
   * A WebSocket does not count towards the few connections that a browser opens to a server over HTTP/1.1. Polling passes networks
   * that close WebSockets, and is up to 2 s later.
   */
  readonly transport?: EventTransport;
  /** `error` says why the connection was lost, if that is known. */
  readonly onState?: (state: EventState, error?: VigilError) => void;
}

export interface EventStream extends AsyncIterable<LiveEvent> {
  readonly state: EventState;
  /** Everything up to there was received. */
  readonly position: string | null;
  close(): void;
}

const FIRST_WAIT_MS = 500;
/** Statuses after which no retry succeeds. */
const FINAL = new Set([400, 401, 403, 404, 405]);

export interface EventSettings {
  readonly open: OpenEvents;
  readonly retryMs?: number | undefined;
}

/** The connection opens with the iteration, and closes with it. */
export function createEventStream(settings: EventSettings, options: EventOptions): EventStream {
  const { controller, release } = linkController(options.signal);
  const progress: Progress = {
    state: 'closed',
    position: options.since ?? null,
    failures: 0,
    enter(state, error) {
      if (state === progress.state) return;
      progress.state = state;
      options.onState?.(state, error);
    },
  };
  return {
    get state() {
      return progress.state;
    },
    get position() {
      return progress.position;
    },
    close: () => controller.abort(),
    async *[Symbol.asyncIterator]() {
      try {
        yield* follow(settings, { ...options, signal: controller.signal }, progress);
      } finally {
        release();
        controller.abort();
        progress.enter('closed');
      }
    },
  };
}

interface Progress {
  state: EventState;
  position: string | null;
  /** Attempts since something was received. */
  failures: number;
  enter(state: EventState, error?: VigilError): void;
}

type Followed = EventOptions & { readonly signal: AbortSignal };

/** One connection after the other. */
async function* follow(settings: EventSettings, options: Followed, progress: Progress): AsyncGenerator<LiveEvent> {
  const { signal } = options;
  while (!signal.aborted) {
    let error: VigilError | undefined;
    progress.enter('connecting');
    try {
      yield* receive(settings.open, options, progress);
    } catch (thrown) {
      error = toPassing(thrown, signal);
    }
    if (signal.aborted) return;
    progress.failures++;
    progress.enter('waiting', error);
    const backoffMs = toBackoffMs(progress.failures, settings.retryMs ?? FIRST_WAIT_MS);
    await pause(Math.max(error?.retryAfterMs ?? 0, backoffMs), signal);
  }
}

/** One connection. */
async function* receive(open: OpenEvents, options: Followed, progress: Progress): AsyncGenerator<LiveEvent> {
  const { objects, events, signal } = options;
  for await (const received of open({ objects, events, since: progress.position, signal })) {
    progress.failures = 0;
    if (received.kind === 'event') {
      progress.position = received.event.position ?? progress.position;
      yield received.event;
    } else {
      progress.position = received.position;
      if (received.kind === 'live') progress.enter('live');
    }
  }
}

/** An error after which another attempt may succeed; throws all others. */
function toPassing(thrown: unknown, signal: AbortSignal): VigilError | undefined {
  if (signal.aborted) return undefined;
  if (!(thrown instanceof VigilError) || FINAL.has(thrown.status)) throw thrown;
  return thrown;
}
