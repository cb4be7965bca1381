/**
 * What the broker is given in place of its own routing and memory: nothing a device publishes goes to another one, and
 * nothing is kept outside the database. So it acknowledges, and no more.
 */
import { Readable } from 'node:stream';

type Done = (error?: Error | null) => void;

/** Takes every message and gives it to nobody. */
export const SILENT_EMITTER = {
  on: (_topic: string, _listener: unknown, done?: Done) => done?.(),
  removeListener: (_topic: string, _listener: unknown, done?: Done) => done?.(),
  emit: (_packet: unknown, done?: Done) => done?.(),
  close: (done?: Done) => done?.(),
};

const nothing = async (): Promise<void> => undefined;
const none = async (): Promise<never[]> => [];
const noStream = (): Readable => Readable.from([]);

/** Sessions, retained messages and wills of aedes-persistence: none is ever there. */
export const SILENT_PERSISTENCE = {
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
  /** Told with each PUBACK; the broker hands on what it gives as the event `ack`. */
  outgoingClearMessageId: async (_client: unknown, packet: unknown) => packet,
  incomingStorePacket: nothing,
  incomingDelPacket: nothing,
  // What is stored is told apart by the packets themselves: every QoS 2 message is new here.
  incomingGetPacket: async () => Promise.reject(new Error('not kept')),
  cleanIncoming: nothing,
  putWill: nothing,
  delWill: nothing,
  streamWill: noStream,
};
