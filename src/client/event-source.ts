/** What the transports of live events have in common. */
import type { EventPayloads } from './generated/api.js';

/** One event. A `gap` says that events before this moment are lost: read over HTTP what you need. */
export type LiveEvent = {
  [Name in keyof EventPayloads]: {
    readonly event: Name;
    readonly data: EventPayloads[Name];
    /** `since` of a later connection; null for a gap. */
    readonly position: Name extends 'gap' ? null : string;
  };
}[keyof EventPayloads];

export type EventName = Exclude<keyof EventPayloads, 'gap'>;

/** What a connection reports. */
export type EventSignal =
  | { readonly kind: 'event'; readonly event: LiveEvent }
  /** All missed events were received; from now on events arrive as they happen. */
  | { readonly kind: 'live'; readonly position: string }
  /** There is no event up to there that was not received. */
  | { readonly kind: 'position'; readonly position: string };

/** Null for a gap: where a stream is after it, the next signal says. */
export const positionOf = (signal: EventSignal): string | null =>
  signal.kind === 'event' ? signal.event.position : signal.position;

export interface EventRequest {
  readonly objects?: readonly string[] | undefined;
  readonly events?: readonly EventName[] | undefined;
  readonly since: string | null;
  readonly signal: AbortSignal;
}

/** Opens one connection; ends or throws when it is lost. */
export type OpenEvents = (request: EventRequest) => AsyncIterable<EventSignal>;
