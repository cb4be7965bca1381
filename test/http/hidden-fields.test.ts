/** Fields that no answer contains: no list may be filtered or sorted by them, since its order or its count would reveal them. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { STORES } from '../../src/core/stores.js';
import { DELIVERY_LAYOUT } from '../../src/webhooks/delivery-lists.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });
let handlerId: string;

beforeAll(async () => {
  handlerId = entityOf(await service.admin('POST', 'handlers', { url: 'http://127.0.0.1:1/hook', active: false }))._id;
});

/** Every list, with the fields that it hides. */
const LISTS: [list: string, hidden: string][] = [
  ...[...STORES.values()].flatMap(({ name, hidden }) => hidden.map((field): [string, string] => [name, field])),
  ...DELIVERY_LAYOUT.hidden.map((field): [string, string] => ['handlers/:id/deliveries', field]),
];

/** Every way in which a client names a field. */
const NAMED = [
  (field: string) => `where.${field}=1`,
  (field: string) => `where_${field}=null`,
  (field: string) => `meta=true&where.${field}.x=1`,
  (field: string) => `sortBy=${field}`,
  (field: string) => `sortBy=-${field}`,
  (field: string) => `sortBy=${field}.x`,
  (field: string) => `sortBy=-%22${field}%22&limit=1`,
  (field: string) => `sortBy=${field}&offset=20000`,
  (field: string) => `sortBy=${field}&search=a`,
];

test('are known for every list', () => {
  expect(new Set(LISTS.map(([list]) => list)).size).toBeGreaterThan(5);
  expect(LISTS).toContainEqual(['handlers/:id/deliveries', 'body']);
});

describe.each(LISTS)('%s %s', (list, field) => {
  test('is refused in every way to name it', async () => {
    for (const toQuery of NAMED) {
      const answer = await service.admin('GET', `${list.replace(':id', handlerId)}?${toQuery(field)}`);
      expectRefusal(answer, 400, `${field}`);
      expect(answer.body.helper.message).toMatch(/no such field$/);
    }
  });

  test('is in no answer that is asked for it', async () => {
    const path = list.replace(':id', handlerId);
    for (const query of [`only=${field}`, `only=${field}.x,name`, `meta=true&only=${field}`]) {
      const { status, text } = await service.admin('GET', `${path}?${query}`);
      expect([status, text.includes(`"${field}"`)]).toEqual([200, false]);
    }
  });
});

test('are refused by requests for many entities', async () => {
  for (const query of ['sortBy=-_secrets', 'sortBy=_editor.user', 'where._secrets=1']) {
    const answer = await service.admin('DELETE', `handlers?where.active=false&dryRun=true&${query}`);
    expectRefusal(answer, 400, 'no such field');
  }
});

test('are refused beside a filter by state', async () => {
  expectRefusal(await service.admin('GET', 'objects?where.state.online=true&sortBy=state.speed'), 400, 'state.speed');
});

test.each(['time', '-time', '_id', 'event', 'bytes', '-attempts', 'error.x', 'unknown'])(
  'do not include %s of deliveries',
  async (field) => {
    const { status } = await service.admin('GET', `handlers/${handlerId}/deliveries?sortBy=${field}`);
    expect(status).toBe(200);
  },
);
