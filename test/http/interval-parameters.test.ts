/** Every operation with an interval, as the OpenAPI document lists them, takes the same times and refuses the same digits. */
import { beforeAll, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import type { Answer } from '../support/http-call.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });

interface Parameter {
  readonly name: string;
}

interface Described {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
}

interface Operation {
  readonly method: string;
  readonly path: string;
  /** What it needs beside the interval. */
  readonly more: string;
}

/** How many values are tried with `begin` and `end`, too. */
const VALUES_OF_ALIASES = 4;
const REFUSED = [
  '20261123',
  '1795500000',
  '1795500000123456',
  '20261123100000',
  '20261131000000',
  '202611310000',
  '261123100000',
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

let operations: Operation[] = [];

beforeAll(async () => {
  await service.admin('POST', 'objects', { id: 'timed', name: 'Timed' });
  await service.admin('POST', 'objects/timed/packets', { time: 1_748_764_800_000, n: 1, lat: 50, lon: 8 });
  const { body: handler } = await service.admin('POST', 'handlers', { url: 'http://127.0.0.1:1/hook', active: false });
  const { body: group } = await service.admin('POST', 'groups', { name: 'Timed' });
  const { body: document } = await service.admin('GET', 'openapi.json');
  const resolve = (one: Parameter | { readonly $ref: string }): Parameter =>
    '$ref' in one ? document.components.parameters[one.$ref.split('/').at(-1) ?? ''] : one;
  operations = Object.entries<Record<string, Described>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { parameters = [] }]) => {
      const names = parameters.map((one) => resolve(one).name);
      // Those of share links have no user.
      if (!names.includes('from') || path.startsWith('/api/v1/shared')) return [];
      const filled = path
        .replace('/api/v1/', '')
        .replace('{store}', 'labels')
        .replace('handlers/{id}', `handlers/${handler._id}`)
        .replace('groups/{id}', `groups/${group._id}`)
        .replace('{id}', 'timed');
      const needs = { param: 'n', params: 'n', objects: 'timed', dryRun: 'true' };
      const more = Object.entries(needs).filter(([name]) => names.includes(name));
      return {
        method: method.toUpperCase(),
        path: filled,
        more: more.map((one) => one.join('=')).join('&'),
      };
    }),
  );
});

/** Asks each operation for each value with each of the bounds, which may be several names; returns what `explain` finds wrong. */
async function findWrong(
  values: readonly string[],
  { bounds, aliases }: { readonly bounds: readonly string[][]; readonly aliases: readonly string[][] },
  explain: (answer: Answer, names: readonly string[]) => string | null,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const { method, path, more } of operations) {
    const ask = async (names: readonly string[], value: string): Promise<void> => {
      const query = [...names.map((name) => `${name}=${encodeURIComponent(value)}`), more].join('&');
      const answer = await service.admin(
        method,
        `${path}?${query}`,
        method === 'PATCH' ? { description: 'x' } : undefined,
      );
      const fault = explain(answer, names);
      if (fault !== null) wrong.push(`${method} ${path}?${query}: ${fault}`);
    };
    for (const [at, value] of values.entries()) {
      // Few at once: the requests of a caller wait for each other.
      const all = at < VALUES_OF_ALIASES ? bounds.concat(aliases) : bounds;
      await Promise.all(all.map((names) => ask(names, value)));
    }
  }
  return wrong;
}

test('refuses what is no time everywhere, and names the parameter', async () => {
  expect(operations.length).toBeGreaterThan(40);
  const each = { bounds: [['from'], ['to']], aliases: [['begin'], ['end']] };
  const wrong = await findWrong(REFUSED, each, ({ status, body }, [name]) =>
    status === 400 && String(body.helper.message).startsWith(`${name}: `) ? null : `${status} ${body.helper?.message}`,
  );
  expect(wrong).toEqual([]);
});

test.each(ACCEPTED.map((value, at) => [value, at] as const))(
  'takes %j as both ends of an interval, everywhere',
  async (value, at) => {
    const aliases = at < VALUES_OF_ALIASES ? [['begin', 'end']] : [];
    const wrong = await findWrong([value], { bounds: [['from', 'to']], aliases }, ({ status, body }) =>
      status === 200 ? null : `${status} ${body.helper?.message}`,
    );
    expect(wrong).toEqual([]);
  },
);
