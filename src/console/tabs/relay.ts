/** The leader's part: passes the signals of its connection on to the other tabs, many at a time. */
import { VigilError } from '../../client/client-error.js';
import type { EventRequest, EventSignal } from '../../client/event-source.js';
import { type Channel, isLater, type Message, type Place, parseMessage, placeAfter } from './messages.js';

export interface Relay {
  /** Passes a signal on. */
  pass(signal: EventSignal): void;
  /** A message of another tab. */
  hear(data: unknown): void;
  /** The connection is lost. */
  end(error?: unknown): void;
}

/** Kept for tabs that come a moment later, such as all of them after a lost connection; others catch up themselves. */
const KEPT_SIGNALS = 1_000;
const BATCH_SIGNALS = 500;

/**
 * `last` is what the connection received last, if it was there before other tabs. `defer` runs a function soon, in a task of its own:
 * timers of a tab in the background may be a minute late.
 */
export function createRelay(channel: Channel, request: EventRequest, last?: EventSignal, defer = deferTask()): Relay {
  let place: Place = last === undefined ? request.since : placeAfter(last);
  let isLive = last !== undefined;
  let batch: EventSignal[] = [];
  let batchFrom = place;
  const kept: EventSignal[] = [];
  let keptFrom = place;

  const send = (message: Message): void => {
    // Another tab leads.
    if (!request.signal.aborted) channel.postMessage(message);
  };
  const flush = (): void => {
    if (batch.length > 0) send({ kind: 'batch', from: batchFrom, signals: batch });
    batch = [];
    batchFrom = place;
  };
  const keep = (signal: EventSignal): void => {
    // Nobody can go on from before a gap, or from before the beginning.
    if (!keptFrom || !place) {
      kept.length = 0;
      keptFrom = place;
      return;
    }
    kept.push(signal);
    if (kept.length <= KEPT_SIGNALS) return;
    for (const dropped of kept.splice(0, KEPT_SIGNALS / 2)) keptFrom = placeAfter(dropped);
  };
  const answer = (since: Place): void => {
    flush();
    const now: EventSignal[] = isLive && place ? [{ kind: 'live', position: place }] : [];
    const missed = since ? kept.filter((signal) => isLater(placeAfter(signal), since)) : [];
    // Other tabs hear it too, and may be elsewhere.
    const isKept = since && keptFrom && !isLater(keptFrom, since);
    const from = isKept ? since : keptFrom;
    send({ kind: 'batch', from: since ? from : place, signals: [...missed, ...now], answers: since });
  };

  return {
    pass(signal) {
      isLive ||= signal.kind === 'live';
      place = placeAfter(signal);
      batch.push(signal);
      keep(signal);
      if (place === '' || batch.length >= BATCH_SIGNALS) flush();
      else if (batch.length === 1) defer(flush);
    },
    hear(data) {
      const message = parseMessage(data);
      if (message?.kind === 'ask') answer(message.since);
    },
    end(error) {
      flush();
      send({ kind: 'end', status: error instanceof VigilError ? error.status : 0 });
    },
  };
}

interface TaskChannel {
  readonly port1: { onmessage: () => void };
  readonly port2: { postMessage(message: null): void };
}

function deferTask(): (run: () => void) => void {
  const { port1, port2 } = new MessageChannel() as unknown as TaskChannel;
  return (run) => {
    port1.onmessage = run;
    port2.postMessage(null);
  };
}
