/** The receivers of all webhooks of this instance, and how many requests each of them may have under way. */
import { LIMITS } from '../core/limits.js';
import { type BreakerAttempt, createBreaker } from './breaker.js';
import type { Receiver } from './receiver.js';
import type { Sender } from './request.js';

export interface Receivers {
  of(handlerId: string): Receiver;
  /** Whether one more request may begin. */
  mayBegin(handlerId: string): boolean;
  began(receiver: Receiver): BreakerAttempt;
  ended(receiver: Receiver): void;
  /** Ends a pause after failures. */
  resume(handlerId: string): void;
  /** Ends those that are idle, and not needed any more. */
  drop(isNeeded: (handlerId: string) => boolean): void;
  stats(): { readonly running: number; readonly open: number };
}

/** `onFree` is called with a receiver that can accept a request again. */
export function createReceivers(createSender: () => Sender, onFree: (handlerId: string) => void): Receivers {
  const receivers = new Map<string, Receiver>();
  let running = 0;
  const receiverOf = (handlerId: string): Receiver => {
    let receiver = receivers.get(handlerId);
    if (receiver === undefined) {
      receiver = { breaker: createBreaker(() => onFree(handlerId)), sender: createSender(), running: 0 };
      receivers.set(handlerId, receiver);
    }
    return receiver;
  };
  // Receivers that hang must not use all requests.
  const hasRoom = (receiver: Receiver): boolean => {
    if (running >= LIMITS.webhookRequests) return false;
    return running < LIMITS.webhookRequests / 2 || receiver.running < LIMITS.webhookRequestsUnderLoad;
  };
  return {
    of: receiverOf,
    mayBegin(handlerId) {
      const receiver = receiverOf(handlerId);
      return receiver.breaker.mayStart() && hasRoom(receiver);
    },
    began(receiver) {
      running++;
      receiver.running++;
      return receiver.breaker.start();
    },
    ended(receiver) {
      running--;
      receiver.running--;
    },
    resume: (handlerId) => receivers.get(handlerId)?.breaker.reset(),
    drop(isNeeded) {
      for (const [handlerId, { running: own, breaker, sender }] of receivers) {
        if (own > 0 || isNeeded(handlerId)) continue;
        breaker.stop();
        sender.close();
        receivers.delete(handlerId);
      }
    },
    stats: () => ({ running, open: [...receivers.values()].filter(({ breaker }) => breaker.isOpen()).length }),
  };
}
