/**
 * Replaces the routing and the persistence of aedes: messages are not forwarded to other devices, and nothing is stored outside the
 * database. aedes only acknowledges.
 */
import { Readable } from 'node:stream';

type Done = (error?: Error | null) => void;

/** Accepts every message and delivers it to no one. */
export const NOOP_EMITTER = {
  on: (_topic: string, _listener: unknown, done?: Done) => done?.(),
  removeListener: (_topic: string, _listener: unknown, done?: Done) => done?.(),
  emit: (_packet: unknown, done?: Done) => done?.(),
  close: (done?: Done) => done?.(),
};

const nothing = async (): Promise<void> => undefined;
const none = async (): Promise<never[]> => [];
const noStream = (): Readable => Readable.from([]);

/** An aedes-persistence without sessions, retained messages and wills. */
export const NOOP_PERSISTENCE = {
  setup: nothing,
  destroy: nothing,
  storeRetained: nothing,
  createRetainedStreamCombi: noStream,
  addSubscriptions: nothing,
  removeSubscriptions: nothing,
  subscriptionsByClient: none,
  subscriptionsByTopic: none,
  cleanSubscriptions: nothing,
  outgoingEnqueue: nothing,
  outgoingEnqueueCombi: nothing,
  outgoingUpdate: nothing,
  outgoingStream: noStream,
  /** Called for each PUBACK; aedes emits the returned packet with the event `ack`. */
  outgoingClearMessageId: async (_client: unknown, packet: unknown) => packet,
  incomingStorePacket: nothing,
  incomingDelPacket: nothing,
  // Duplicates are detected when packets are stored, so every QoS 2 message is treated as new.
  incomingGetPacket: async () => Promise.reject(new Error('not kept')),
  cleanIncoming: nothing,
  putWill: nothing,
  delWill: nothing,
  streamWill: noStream,
};
