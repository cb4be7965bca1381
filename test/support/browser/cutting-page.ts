/** What a page of a test runs: the client, with connections that break. */
import type { EventTransport } from '../../../src/client/client.js';
import { type CutRun, runCuts } from '../cutting.js';

interface Given {
  readonly login: { readonly login: string; readonly password: string };
  readonly transport: EventTransport;
  readonly reconnections: number;
}

const Socket = (globalThis as unknown as { WebSocket: Parameters<typeof runCuts>[0]['Socket'] }).WebSocket;
let run: CutRun;

Object.assign(globalThis, {
  async beginCuts(given: Given): Promise<void> {
    run = await runCuts({ ...given, url: '', Socket, abort: (socket) => socket.close() });
  },
  async endCuts(): Promise<Pick<CutRun, 'sent' | 'received'>> {
    await run.stop();
    return { sent: run.sent, received: run.received };
  },
});
