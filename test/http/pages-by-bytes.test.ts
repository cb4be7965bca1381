/** Lists of large elements come in pages of a bounded size, whose links lead through all of them in every order: never a 413. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient } from '../../src/client/client.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';

const PACKETS = 60;
const NOW = Date.now() - 10 * PACKETS;
const service = useService();
const usual = LIMITS.listAnswerBytes;

interface Numbered {
  readonly n: number;
}

beforeAll(async () => {
  entityOf(await service.admin('POST', 'objects', { id: 'large', name: 'Large' }));
  for (let n = 0; n < PACKETS; n++) {
    // Packets of 9 KB.
    entityOf(await service.admin('POST', 'objects/large/packets', { time: NOW + n, n, text: 'x'.repeat(9_000) }));
    entityOf(await service.admin('POST', 'labels', { name: 'large', n, text: 'x'.repeat(9_000) }));
    entityOf(await service.admin('POST', 'objects', { id: `of-${n}`, name: 'each', n, text: 'x'.repeat(9_000) }));
  }
  Object.assign(LIMITS, { listAnswerBytes: 100_000 });
});

afterAll(() => {
  Object.assign(LIMITS, { listAnswerBytes: usual });
});

/** All elements, by the links of the pages; each page but the last is as large as it may be. */
async function readAll(path: string): Promise<number[]> {
  const found: number[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const answer = await service.admin('GET', next);
    expect(answer.status).toBe(200);
    expect(answer.text.length).toBeLessThan(100_000 + 10_000);
    found.push(...(answer.body as Numbered[]).map(({ n }) => n));
    next = /<\/api\/v1\/([^>]*)>; rel="next"/.exec(answer.headers.link ?? '')?.[1];
    if (next !== undefined) expect(answer.text.length).toBeGreaterThan(90_000);
  }
  return found;
}

const all = Array.from({ length: PACKETS }, (_, n) => n);

describe('leads by links through all elements', () => {
  test.each<[path: string, expected: number[]]>([
    ['objects/large/packets', all],
    [`objects/large/packets?from=${NOW}&limit=10000`, all],
    ['objects/large/packets?sortBy=-time', all.toReversed()],
    ['objects/large/packets?sortBy=-n&offset=5', all.toReversed().slice(5)],
    ['objects/large/packets?offset=7', all.slice(7)],
    ['objects/large/packets?only=n', all],
    ['labels?where.name=large', all],
    ['labels?where.name=large&sortBy=-n', all.toReversed()],
    ['objects?where.name=each', all],
    ['objects?where.name=each&where.state.online=null', all],
    ['objects?where.name=each&sortBy=state.time', all],
    ['objects?where.name=each&state=latest-of-each', all],
  ])('reads all of %s', async (path, expected) => {
    expect(await readAll(path)).toEqual(expected);
  });
});

test('lets the client read a list of any size', async () => {
  const client = createClient({ url: service.url, login: ADMIN });
  const labels = await client.labels.list({ where: { name: 'large' } }).all();
  expect(labels.map((label) => (label as unknown as Numbered).n)).toEqual(all);
  const newest = await client.objects.packets('large', { sortBy: '-time', limit: 40 }).all();
  expect(newest.map((packet) => packet.n)).toEqual(all.toReversed().slice(0, 40));
});
