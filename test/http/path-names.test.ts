/** Names in addresses that mean something elsewhere: stores, encodings, filters, projections, orders. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService();

beforeAll(async () => {
  entityOf(await service.admin('POST', 'stores', { name: 'trucks' }));
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
  entityOf(await service.admin('POST', 'trucks', { name: 'T1' }));
  await service.admin('POST', 'objects/car/commands/go', {});
});

describe('an unknown store', () => {
  test.each([
    'packets',
    'sessions',
    'installation',
    'custom.trucks',
    'trucks.000000000000000000000001',
    'system.users',
    'system.views',
    'admin',
    '$cmd',
    'oplog.rs',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
    'null',
    'undefined',
    '%00',
    'objects%00',
    'objects%2Fcar',
    '..%2Fobjects',
    'ob jects',
    'labels;drop',
    encodeURIComponent('магазин'),
    'x'.repeat(2_000),
    'object',
    '%7B%22%24ne%22%3A1%7D',
  ])('is not found: %j', async (store) => {
    const before = (await service.client.db().listCollections().toArray()).length;
    const { text } = await service.admin('GET', 'nowhere');
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['GET', '/x'],
      ['PATCH', '/x'],
      ['DELETE', '/x'],
      ['PUT', ''],
    ] as const) {
      const answer = await service.admin(
        method,
        `${store}${path}`,
        method === 'POST' || method === 'PATCH' ? { name: 'n' } : undefined,
      );
      expectRefusal(answer, 404);
      expect(answer.text).toBe(text);
    }
    expect(await service.client.db().listCollections().toArray()).toHaveLength(before);
  });
});

describe('a path with invalid encoding', () => {
  test.each([
    '%E0%A4%A',
    'objects/%',
    'objects/%ZZ',
    'objects/%ED%A0%80',
    'objects/car/packets/%FF',
    'objects/car/commands/%C3',
  ])('is refused: %s', async (path) => {
    expectRefusal(await service.admin('GET', path), 400);
  });
});

describe('a name in a filter, a projection or an order', () => {
  beforeAll(async () => {
    for (const speed of [1, { x: 2 }]) entityOf(await service.admin('POST', 'objects/car/packets', { speed }));
  });

  test.each([
    'only=_id.x',
    'only=_id._id,name',
    'only=name.first,name',
    'only=config.0,config.a.b.c.d.e',
    'only=__proto__,constructor',
    'only=state,state.speed',
    'only=state.speed.x',
    'only=state._id.x,state.time',
    'only=branch.0,access.x',
    'only=_password,_builtin',
    'sortBy=__proto__',
    'sortBy=_id.x',
    'sortBy=branch',
    'sortBy=config.a.0',
    'sortBy=-_id',
    'where.__proto__=1',
    'where.constructor=x',
    'where._id=x',
    'where._id=null',
    'where._id.x=1',
    'where.branch.0=1',
    'where.owner=1',
    'where.name=%2F.*%2F',
    'where.name=%5Bobject%20Object%5D',
    'where.time=1e308,-1e308',
    'search=.*',
    'search=%5B(%7B%5C',
    'search=%5Cx%7B41%7D',
    'search=%00',
    'search=%F0%9F%9A%97',
    'from=0&to=99999999999999',
    'offset=10000000',
  ])('is accepted in pages and summaries: %s', async (query) => {
    for (const store of ['objects', 'users', 'tokens', 'trucks', 'commands', 'objects/car/packets']) {
      const page = await service.admin('GET', `${store}?${query}`);
      expect([store, page.status, Array.isArray(page.body)]).toEqual([store, 200, true]);
      if (query.startsWith('offset')) continue;
      const summary = await service.admin('GET', `${store}?meta=true&${query}`);
      expect([store, summary.status, Object.keys(summary.body)]).toEqual([store, 200, ['count', 'first', 'last']]);
    }
    if (query.startsWith('only')) entityOf(await service.admin('GET', `objects/car?${query}`));
  });
});
