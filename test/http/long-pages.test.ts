/** Long pages, whose buffers are reused: each client reads its own page beside others that read slowly or disconnect. */
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';

const OBJECTS = 4;
const PACKETS = 6_000;
const service = useService();
const keys: string[] = [];
let token: string;

/** The text of a packet names its object and its number, and makes the page long. */
const nameOf = (nth: number, at: number): string => `object ${nth} packet ${at} `.repeat(4);

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  for (let nth = 0; nth < OBJECTS; nth++) {
    const { _id } = entityOf(await service.admin('POST', 'objects', { id: `memory-${nth}`, name: 'Car' }));
    keys.push(_id);
    for (let from = 0; from < PACKETS; from += 1_000) {
      const packets = Array.from({ length: 1_000 }, (_, at) => ({ time: from + at, text: nameOf(nth, from + at) }));
      expect((await service.admin('POST', `objects/${_id}/packets`, packets)).status).toBe(200);
    }
  }
});

/** Reads the page of an object with pauses between its parts, or disconnects in the middle of it. */
function readSlowly(nth: number, { pauseMs, leaves }: { pauseMs: number; leaves: boolean }): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}` };
    const asked = request(
      `${service.url}/api/v1/objects/${keys[nth]}/packets`,
      { headers, agent: false },
      async (res) => {
        const parts: Buffer[] = [];
        for await (const part of res) {
          parts.push(part as Buffer);
          if (leaves) break;
          if (pauseMs > 0 && parts.length % 8 === 0) await wait(pauseMs);
        }
        resolve(leaves ? null : Buffer.concat(parts).toString());
      },
    );
    asked.on('error', reject).end();
  });
}

test('sends each client the packets of its own object', async () => {
  const readers = Array.from({ length: 24 }, (_, at) => ({ nth: at % OBJECTS, pauseMs: at % 3, leaves: at % 6 === 5 }));
  const pages = await Promise.all(readers.map(({ nth, ...how }) => readSlowly(nth, how)));
  for (const [at, { nth, leaves }] of readers.entries()) {
    if (leaves) continue;
    const texts = (JSON.parse(pages[at] as string) as { text: string }[]).map(({ text }) => text);
    expect(texts).toEqual(Array.from({ length: PACKETS }, (_, packet) => nameOf(nth, packet)));
  }
});
