/** Long pages whose memory is used again: each client reads its own page, whoever reads slowly or leaves beside it. */
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createBufferPool } from '../../src/db/bson/buffer-pool.js';
import { LIMITS } from '../../src/model/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';

const OBJECTS = 4;
const PACKETS = 6_000;
const service = useService();
const keys: string[] = [];
let token: string;

/** Every packet says whose it is and which one, in a text that makes the page long. */
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

/** The page of an object as a client reads it that pauses between its parts, or leaves in the midst of it. */
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

test('each page holds what was asked for', async () => {
  const readers = Array.from({ length: 24 }, (_, at) => ({ nth: at % OBJECTS, pauseMs: at % 3, leaves: at % 6 === 5 }));
  const pages = await Promise.all(readers.map(({ nth, ...how }) => readSlowly(nth, how)));
  for (const [at, { nth, leaves }] of readers.entries()) {
    if (leaves) continue;
    const texts = (JSON.parse(pages[at] as string) as { text: string }[]).map(({ text }) => text);
    expect(texts).toEqual(Array.from({ length: PACKETS }, (_, packet) => nameOf(nth, packet)));
  }
});

describe('memory that is kept', () => {
  const memory = createBufferPool();
  const { memoryStepBytes: step, memoriesKept, memoryKeptBytes } = LIMITS;

  test('serves again what fits into it, and nobody else meanwhile', () => {
    const first = memory.acquire(step + 1);
    expect(first.length).toBe(2 * step);
    memory.release(first);
    const [again, other] = [memory.acquire(2 * step), memory.acquire(2 * step)];
    expect([again, other].filter((one) => one === first)).toHaveLength(1);
    expect(other).not.toBe(again);
  });

  test('is bounded, in number and in size', () => {
    const lent = Array.from({ length: 2 * memoriesKept }, () => memory.acquire(3 * step));
    for (const one of lent) memory.release(one);
    const again = Array.from({ length: 2 * memoriesKept }, () => memory.acquire(3 * step));
    expect(again.filter((one) => lent.includes(one)).length).toBeLessThanOrEqual(memoriesKept);
    const large = memory.acquire(memoryKeptBytes + 1);
    memory.release(large);
    expect(memory.acquire(memoryKeptBytes + 1)).not.toBe(large);
  });
});
