/**
 * One connection for all tabs of a user: one of them, the leader, has it and passes on what it receives. What that needs is loaded
 * when there is another tab.
 */
import type { EventRequest, EventSignal, OpenEvents } from '../../client/event-source.js';
import { linkController } from '../../client/waiting.js';
import type { HowToLead } from '../tabs/follow.js';
import type { Channel } from '../tabs/messages.js';

interface Locks {
  request(name: string, how: HowToLead, hold: (lock: object | null) => unknown): Promise<unknown>;
}

/** What of a browser's window is needed here. */
export interface Tab {
  readonly navigator: { readonly locks?: Locks };
  readonly BroadcastChannel: new (name: string) => Channel;
  readonly document: EventTarget;
}

let parts: typeof import('../tabs/tabs.js') | undefined;

const loadParts = async () => {
  parts ??= await import('../tabs/tabs.js');
  return parts;
};

/** The leader holds the lock of this name. Pages over plain HTTP have no locks: there each tab has its own connection. */
export function shareWithTabs(open: OpenEvents, name: string, tab: Tab): OpenEvents {
  const { locks } = tab.navigator;
  if (locks === undefined) return open;
  return async function* openShared(request) {
    const { controller, release } = linkController(request.signal);
    const { signal } = controller;
    const own = { ...request, signal };
    const end = (): void => controller.abort();
    const ended = new Promise((resolve) => signal.addEventListener('abort', resolve));
    const channel = new tab.BroadcastChannel(name);
    /** Resolves when this tab leads, which it does until the end; false if it cannot. */
    const lead = (how: HowToLead): Promise<boolean> =>
      new Promise((resolve) => {
        const hold = (lock: object | null) => {
          resolve(lock !== null);
          return lock && ended;
        };
        // Rejected when another tab takes over.
        const released = locks.request(name, how, hold).catch(end);
        void released.then(() => resolve(true));
      });
    // What stands still keeps the other tabs waiting.
    tab.document.addEventListener('freeze', end, { signal });
    try {
      if (!(await lead({ ifAvailable: true }))) {
        const found = await loadParts().catch(() => undefined);
        if (found) own.since = yield* found.follow({ open, channel, lead, end, document: tab.document }, own);
      }
      if (!signal.aborted) yield* leadTabs(open, channel, own);
    } finally {
      release();
      end();
      channel.close();
    }
  };
}

async function* leadTabs(open: OpenEvents, channel: Channel, request: EventRequest): AsyncGenerator<EventSignal> {
  let last: EventSignal | undefined;
  let relay = parts?.createRelay(channel, request);
  const hear = async ({ data }: { readonly data: unknown }): Promise<void> => {
    const { createRelay } = await loadParts();
    relay ??= createRelay(channel, request, last);
    relay.hear(data);
  };
  // A tab that gets no answer takes over.
  channel.addEventListener('message', (message) => void hear(message).catch(() => undefined));
  try {
    for await (last of open(request)) {
      relay?.pass(last);
      yield last;
    }
  } catch (error) {
    relay?.end(error);
    throw error;
  }
  relay?.end();
}
