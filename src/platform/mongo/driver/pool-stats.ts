/** Counts the connections to the database, from the pool events of the driver. */
import type { MongoClient } from 'mongodb';

export interface PoolState {
  readonly open: number;
  readonly inUse: number;
  /** Operations that wait for a connection. */
  readonly waiting: number;
}

const counts = new WeakMap<MongoClient, () => PoolState>();

/** The sum over the clients since `countPool`. */
export function poolStateOf(...clients: readonly MongoClient[]): PoolState {
  const states = clients.map((client) => counts.get(client)?.() ?? { open: 0, inUse: 0, waiting: 0 });
  const sum = (name: keyof PoolState): number => states.reduce((total, state) => total + state[name], 0);
  return { open: sum('open'), inUse: sum('inUse'), waiting: sum('waiting') };
}

/** To be called before the client connects. */
export function countPool(client: MongoClient): MongoClient {
  let open = 0;
  let inUse = 0;
  let waiting = 0;
  client.on('connectionCreated', () => void open++);
  client.on('connectionClosed', () => void open--);
  client.on('connectionCheckOutStarted', () => void waiting++);
  client.on('connectionCheckOutFailed', () => void waiting--);
  client.on('connectionCheckedOut', () => {
    waiting--;
    inUse++;
  });
  client.on('connectionCheckedIn', () => void inUse--);
  counts.set(client, () => ({ open, inUse, waiting }));
  return client;
}
