/** A connection to the database of the tests that a test can cut and restore. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { findFreePort } from './ports.js';

export interface Line {
  /** The address of the database through this line. */
  readonly uri: string;
  cut(): Promise<void>;
  mend(): Promise<void>;
}

/** Opens a line to the database at this address. */
export async function openLine(databaseUri: string): Promise<Line> {
  const sockets = new Set<Socket>();
  const database = new URL(databaseUri);
  // Not one that the system gives: it might give it to another program while the line is cut.
  const port = await findFreePort();
  const server = createServer((near) => {
    const far = connect(Number(database.port), database.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  const mend = async (): Promise<void> => {
    if (server.listening) return;
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await mend();
  const uri = new URL(database);
  uri.port = String(port);
  return {
    uri: uri.href,
    mend,
    async cut() {
      if (!server.listening) return;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
