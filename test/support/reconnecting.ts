/** A client in Node.js whose connections break again and again. */
import { WebSocket } from 'ws';
import type { EventTransport } from '../../src/client/client.js';
import { runCuts } from './cutting.js';
import { ADMIN, type TestService } from './fixture.js';

/** Returns the numbers of the packets that were sent, and of those that arrived, in order. */
export async function reconnectOften(
  { url, settled }: TestService,
  transport: EventTransport,
  reconnections: number,
): Promise<{ sent: number[]; received: unknown[] }> {
  const abort = (socket: unknown): void => (socket as WebSocket).terminate();
  const run = await runCuts({ url, login: ADMIN, transport, reconnections, Socket: WebSocket, abort });
  // A repeated event would arrive before this.
  await settled();
  await run.stop();
  return run;
}
