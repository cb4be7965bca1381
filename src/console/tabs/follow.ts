/**
 * A follower's part: receives the signals of the leader's connection. Positions decide what it takes, so that nothing is lost or
 * repeated whoever leads, and however late a message is.
 */
import { VigilError } from '../../client/client-error.js';
import type { EventRequest, EventSignal, OpenEvents } from '../../client/event-source.js';
import { linkController } from '../../client/waiting.js';
import { type Channel, isLater, type Message, type Place, parseMessage, placeAfter } from './messages.js';

/** If no other tab leads, or in its place; otherwise as soon as no other does. */
export interface HowToLead {
  readonly ifAvailable?: boolean;
  readonly steal?: boolean;
}

export interface Following {
  /** A connection of the tab's own. */
  readonly open: OpenEvents;
  readonly channel: Channel;
  /** Resolves when this tab leads. */
  lead(how: HowToLead): Promise<unknown>;
  /** Aborts the signal of the request. */
  end(): void;
  /** Reports when the tab is shown. */
  readonly document: EventTarget;
}

/** The leader answers at once, unless its tab stands still. */
const ANSWER_MS = 5_000;
/** The leader passes something on at least every 25 s. */
const SILENCE_MS = 65_000;
/** More is dropped, and asked for again: nothing else bounds what waits while a tab catches up. */
const WAITING_MESSAGES = 500;

interface State {
  place: Place;
  /** From where the tab has asked the leader to go on; undefined while it waits for no answer. */
  asked: Place | undefined;
  /** Whether a leader was heard since then. */
  isHeard: boolean;
  /** Whether the place is of an own connection: the leader may be behind it. */
  isAhead: boolean;
}

/** Returns where the tab goes on as the leader, or ends as the leader's connection did; throws why that was refused. */
export async function* follow(following: Following, request: EventRequest): AsyncGenerator<EventSignal, string | null> {
  const { channel, document } = following;
  const state: State = { place: request.since, asked: undefined, isHeard: false, isAhead: false };
  const inbox = createInbox(channel, request.signal);
  const catchUp = () => catchUpAlone(following.open, request, state);
  const lead = (how: HowToLead): void => void following.lead(how).then(inbox.lead);
  const ask = (): void => {
    state.asked = state.place;
    state.isHeard = false;
    channel.postMessage({ kind: 'ask', since: state.place });
    inbox.expect(ANSWER_MS);
  };
  // The tab that was shown before may stand still now.
  document.addEventListener('visibilitychange', ask);
  try {
    lead({});
    ask();
    for (;;) {
      const message = await inbox.next();
      if (message === 'lead') return state.place || null;
      if (message === 'silence') {
        if (state.asked === undefined || state.isHeard) ask();
        else lead({ steal: true });
      } else if (message.kind === 'end') {
        if (message.status !== 0) throw new VigilError({ ...message, message: 'connection refused' });
        following.end();
      } else if (message.kind === 'batch') {
        const isAnswer = message.answers !== undefined && message.answers === state.asked;
        if (isAnswer) state.asked = undefined;
        if (!isNext(message.from, state.place)) {
          if (isAnswer) yield* catchUp();
          else if (state.asked === undefined) ask();
        }
        if (isNext(message.from, state.place)) yield* take(message.signals, state, catchUp);
        state.isHeard = true;
        if (state.asked === undefined) inbox.expect(SILENCE_MS);
      }
    }
  } finally {
    document.removeEventListener('visibilitychange', ask);
    inbox.close();
  }
}

/** Whether no signal is missing between a place and what follows `from`. */
const isNext = (from: Place, place: Place): boolean =>
  place === null || from === place || (!!from && place !== '' && !isLater(from, place));

/** Those that the tab has not received. */
async function* take(
  signals: readonly EventSignal[],
  state: State,
  catchUp: () => AsyncGenerator<EventSignal>,
): AsyncGenerator<EventSignal> {
  for (const signal of signals) {
    const next = placeAfter(signal);
    const isLive = signal.kind === 'live';
    // A new stream begins at its first `live`.
    if (state.place === null && !isLive) continue;
    if (!state.place || next === '' || isLater(next, state.place)) {
      state.place = next;
      yield signal;
    } else if (isLive) {
      // A leader that is behind for long has another database: the service says what is lost.
      if (next !== state.place && !state.isAhead) yield* catchUp();
      else yield { kind: 'live', position: state.place };
    }
  }
}

/** Receives over an own connection, for once, what the leader has no more. */
async function* catchUpAlone(open: OpenEvents, request: EventRequest, state: State): AsyncGenerator<EventSignal> {
  const { controller, release } = linkController(request.signal);
  try {
    for await (const signal of open({ ...request, since: state.place || null, signal: controller.signal })) {
      state.place = placeAfter(signal);
      yield signal;
      state.isAhead = signal.kind === 'live';
      if (state.isAhead) return;
    }
  } finally {
    release();
    controller.abort();
  }
  throw new VigilError({ status: 0, message: 'connection lost' });
}

type News = Message | 'lead' | 'silence';

/** The messages of other tabs in order, then whether this one leads now, or has heard nothing for too long. */
function createInbox(channel: Channel, signal: AbortSignal) {
  const waiting: Message[] = [];
  let isLeader = signal.aborted;
  let isSilent = false;
  let wake: () => void = () => undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const lead = (): void => {
    isLeader = true;
    wake();
  };
  const expect = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      isSilent = true;
      wake();
    }, ms);
  };
  const onMessage = ({ data }: { readonly data: unknown }): void => {
    const message = parseMessage(data);
    if (message === null || message.kind === 'ask') return;
    if (waiting.length >= WAITING_MESSAGES) waiting.length = 0;
    waiting.push(message);
    wake();
  };
  channel.addEventListener('message', onMessage);
  signal.addEventListener('abort', lead);
  return {
    lead,
    expect,
    async next(): Promise<News> {
      while (waiting.length === 0 && !isLeader && !isSilent) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const message = signal.aborted ? undefined : waiting.shift();
      if (message !== undefined) return message;
      if (isLeader) return 'lead';
      isSilent = false;
      return 'silence';
    },
    close(): void {
      clearTimeout(timer);
      channel.removeEventListener('message', onMessage);
      signal.removeEventListener('abort', lead);
    },
  };
}
