/** A receiver of webhooks and notifications on a port of its own: it records messages, and answers as the test decides. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { LIMITS } from '../../src/core/limits.js';
import type { TestService } from './fixture.js';
import { until } from './until.js';

export interface Received {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
  readonly body: any;
}

export type Answer = (received: Received, res: ServerResponse, req: IncomingMessage) => void;

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Answers the next requests. */
  answer: Answer;
  /** Resolves when this number of messages has arrived. */
  got(count: number): Promise<Received[]>;
  /** Resolves when all that was sent by processes that have ended has arrived. */
  emptied(): Promise<void>;
  stop(): Promise<void>;
}

export const OK: Answer = (_received, res) => void res.end('ok');

export async function startReceiver(): Promise<Receiver> {
  const { receiver, listen } = createReceiver();
  await listen();
  return receiver;
}

/** A receiver for all tests of a file; before each test it forgets its messages and takes this answer. */
export function useReceiver(answer: Answer = OK): Receiver {
  const { receiver, listen } = createReceiver();
  beforeAll(listen);
  beforeEach(() => {
    receiver.received.length = 0;
    receiver.answer = answer;
  });
  afterAll(() => receiver.stop());
  return receiver;
}

function createReceiver(): { receiver: Receiver; listen: () => Promise<void> } {
  const received: Received[] = [];
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece) => pieces.push(piece));
    req.on('end', () => {
      const text = Buffer.concat(pieces).toString();
      const id = req.headers['webhook-id'] ?? req.headers['idempotency-key'];
      const one = { id: String(id), path: String(req.url), headers: req.headers, text };
      const isText = req.headers['content-type']?.startsWith('text/') === true;
      const whole = { ...one, body: isText ? text : JSON.parse(text) };
      received.push(whole);
      receiver.answer(whole, res, req);
    });
  });
  const receiver: Receiver = {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    },
    received,
    answer: OK,
    async got(count) {
      await until(() => received.length >= count, `${count} messages`);
      return received;
    },
    emptied() {
      const count = () =>
        new Promise<number>((resolve, reject) =>
          server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
        );
      return until(async () => (await count()) === 0, 'the end of every connection');
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return { receiver, listen: () => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve)) };
}

/**
 * Resolves when the service, which has an `OPS_PORT`, follows the live feed. Before, it may read the creation of an object from
 * the history, and send it to a handler that was created later in the same second.
 */
export async function becomesLive({ service: { opsUrl } }: TestService): Promise<void> {
  const wanted = [`vigil_processing_partitions ${LIMITS.partitions}`, 'vigil_processing_partitions_behind 0'];
  const isLive = async (): Promise<boolean> => {
    const lines = (await (await fetch(`${opsUrl}/metrics`)).text()).split('\n');
    return wanted.every((line) => lines.includes(line));
  };
  await until(isLive, 'all partitions to be live');
}

type Entity = { readonly _id: string };

/** Common steps of tests of webhooks, with a service that has an `OPS_PORT`. */
export function useWebhooks(service: TestService, receiver: Receiver) {
  let count = 0;
  beforeAll(() => becomesLive(service));
  return {
    createObject: async (fields: object = {}) =>
      (await service.admin('POST', 'objects', { id: `hooked-${++count}`, name: 'x', ...fields })).body,
    /** Resolves when the handler is active. */
    async createHandler(fields: object = {}) {
      const { status, body } = await service.admin('POST', 'handlers', { url: receiver.url, ...fields });
      expect(status).toBe(200);
      await service.settled();
      return body;
    },
    /** Resolves when no further message of the handler can start: it would count for the next test. */
    async remove({ _id }: Entity) {
      await service.admin('DELETE', `handlers/${_id}`);
      await service.settled();
    },
  };
}

/** Throws when the signature does not belong to the secret. */
export function verify(secret: string, { text, headers }: Received): void {
  new Webhook(secret).verify(text, headers as Record<string, string>);
}
