/** A system behind a source that takes commands, and objects whose devices it has. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import type { TestService } from './fixture.js';
import type { Source, useSources } from './sources.js';
import { until } from './until.js';

export interface TakenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: bodies
  readonly body: any;
  /** What it was answered. */
  readonly status: number;
}

export interface CommandPeer {
  url: string;
  /** What it was sent, whatever it answered. */
  got: TakenRequest[];
  /** The status of its answers: the next one at each call. */
  status: () => number;
  /** The body of its answers. */
  text: string;
  /** Until when it keeps its answers back. */
  held: Promise<void> | null;
}

/** The token with which it is asked. */
export const PEER_KEY = 'the-token-of-the-peer';

/** Payloads of a device, as its system sends them. */
const UPLINKS: Readonly<Record<string, (id: string) => object>> = {
  traccar: (id) => ({
    position: { fixTime: '2026-11-24T06:00:00Z', latitude: 52.5, longitude: 13.4, attributes: {} },
    device: { id: 17, uniqueId: id, name: id },
  }),
  ttn: (id) => ({
    end_device_ids: { device_id: id, dev_eui: '70B3D57ED0000001' },
    received_at: '2026-11-24T06:00:00Z',
    uplink_message: { f_port: 1, decoded_payload: { t: 1 } },
  }),
  chirpstack: (id) => ({ deviceInfo: { devEui: id }, time: '2026-11-24T06:00:00Z', rxInfo: [], object: { t: 1 } }),
};

export const uplinkOf = (kind: string, id: string): object => UPLINKS[kind]?.(id) ?? {};

export function useCommandPeer(
  service: TestService,
  { createSource, createObject, send }: ReturnType<typeof useSources>,
) {
  const peer: CommandPeer = { url: '', got: [], status: () => 200, text: '{}', held: null };
  let server: Server;
  beforeAll(async () => {
    server = createServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk) => chunks.push(chunk));
      req.on('end', async () => {
        const body = JSON.parse(Buffer.concat(chunks).toString());
        const status = peer.status();
        peer.got.push({ path: req.url ?? '', headers: req.headers, body, status });
        await peer.held;
        res.writeHead(status).end(peer.text);
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    peer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    Object.assign(peer, { got: [], status: () => 200, text: '{}', held: null });
  });

  // biome-ignore lint/suspicious/noExplicitAny: commands
  const read = async (commandId: string): Promise<any> => (await service.admin('GET', `commands/${commandId}`)).body;
  return {
    peer,
    read,
    becomes: (commandId: string, status: string) =>
      until(async () => (await read(commandId)).status === status, `the command to be ${status}`),
    /** A source of the kind, and an object that has sent through it. */
    async connect(kind: string, fields: { readonly object?: object } = {}): Promise<{ source: Source; id: string }> {
      const source = await createSource({ kind, commandUrl: peer.url, commandKey: PEER_KEY });
      const { id } = await createObject(fields.object);
      expect((await send(source, uplinkOf(kind, id))).status).toBe(200);
      return { source, id };
    },
    /** Returns the `_id` of the command. */
    async command(id: string, name: string, params: object = {}): Promise<string> {
      const { headers, text, status } = await service.admin('POST', `objects/${id}/commands/${name}`, params);
      if (status !== 200) throw new Error(text);
      return (headers.location as string).split('/').at(-1) as string;
    },
  };
}
