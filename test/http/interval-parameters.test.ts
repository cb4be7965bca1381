/** Every operation with an interval, as the OpenAPI document lists them, takes the same times and refuses the same digits. */
import { beforeAll, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });

interface Operation {
  readonly parameters?: readonly ({ readonly name: string } | { readonly $ref: string })[];
}

const NAMES = ['from', 'to'];
const ALIASES = ['begin', 'end'];
/** How many values are tried with them. */
const VALUES_OF_ALIASES = 4;
const REFUSED = [
  '20261123',
  '1795500000',
  '1795500000123456',
  '20261123100000',
  '1e12',
  '1_795_500_000_000',
  '0x1A0B0C0D0E0F',
  '-1795500000000',
  '01795500000000',
  'NaN',
  'Infinity',
  'now',
  '2026-02-30',
  '2026-W60-1',
  '2026-11-23T25:00',
  '23.11.2026',
  'Mon, 24 Nov 2026 10:00:00 GMT',
  '٢٠٢٦-١١-٢٣',
];
const ACCEPTED = [
  '0',
  '1795500000000',
  '1795500000000.5',
  ' 2026-11-23 ',
  '2026-11-23 10:00:00+00:00',
  '2026-11-23T10:00:00,5Z',
  '2016-12-31T23:59:60Z',
  '2026-W48-1',
  '20261123T100000Z',
  'Mon, 23 Nov 2026 10:00:00 GMT',
];

/** The method and the path of each operation, with what it needs beside the interval. */
let operations: (readonly [method: string, path: string, more: string])[] = [];

beforeAll(async () => {
  await service.admin('POST', 'objects', { id: 'timed', name: 'Timed' });
  await service.admin('POST', 'objects/timed/packets', { time: 1_748_764_800_000, n: 1, lat: 50, lon: 8 });
  const { body: handler } = await service.admin('POST', 'handlers', { url: 'http://127.0.0.1:1/hook', active: false });
  const { body: document } = await service.admin('GET', 'openapi.json');
  operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { parameters = [] }]) => {
      const names = parameters.map((one) =>
        '$ref' in one ? document.components.parameters[one.$ref.split('/').at(-1) ?? ''].name : one.name,
      );
      // Those of share links have no user.
      if (!names.includes('from') || path.startsWith('/api/v1/shared')) return [];
      const filled = path
        .replace('/api/v1/', '')
        .replace('{store}', 'labels')
        .replace('handlers/{id}', `handlers/${handler._id}`)
        .replace('{id}', 'timed');
      const params = names.includes('params') ? '&params=n' : '';
      const objects = params !== '' && names.includes('objects') ? '&objects=timed' : '';
      return [
        [method.toUpperCase(), filled, `${params}${objects}${names.includes('dryRun') ? '&dryRun=true' : ''}`] as const,
      ];
    }),
  );
});

test.each([
  [400, REFUSED],
  [200, ACCEPTED],
] as const)('answers the same values with %i everywhere', async (wanted, values) => {
  expect(operations.length).toBeGreaterThan(40);
  const wrong: string[] = [];
  for (const [method, path, more] of operations) {
    const ask = async (name: string, value: string): Promise<void> => {
      const query = `${name}=${encodeURIComponent(value)}${more}`;
      const body = method === 'PATCH' ? { description: 'x' } : undefined;
      const { status, body: answer } = await service.admin(method, `${path}?${query}`, body);
      const isNamed = wanted === 200 || String(answer?.helper?.message).startsWith(`${name}: `);
      if (status !== wanted || !isNamed) wrong.push(`${method} ${path}?${query}: ${status}`);
    };
    for (const [at, value] of values.entries()) {
      const names = at < VALUES_OF_ALIASES ? [...NAMES, ...ALIASES] : NAMES;
      // Few at once: the requests of a caller wait for each other.
      await Promise.all(names.map((name) => ask(name, value)));
    }
  }
  expect(wrong).toEqual([]);
});
