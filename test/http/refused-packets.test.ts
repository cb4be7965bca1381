/** Packets that cannot be stored: they cost none of the others, and their objects tell why. */
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, eventsOf, expectRefusal, refusal } from '../support/answers.js';
import { ADMIN, type Answer, type Listener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const NOW = Date.now();
const service = useService({ now: () => NOW });
let listener: Listener;
let model: string;
let count = 0;

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const children = [{ id: 'speed', type: 'argument', dataType: 'number' }];
  model = entityOf(await service.admin('POST', 'models', { name: 'typed', data: { children } }))._id;
});

beforeEach(async () => void (await received()));

const create = async () => entityOf(await service.admin('POST', 'objects', { id: `r-${++count}`, name: 'Car', model }));
const post = (key: string, body: unknown, query = '') => service.admin('POST', `objects/${key}/packets${query}`, body);
const speedsOf = async (key: string) =>
  (await service.admin('GET', `objects/${key}/packets?only=speed`)).body.map(({ speed }: { speed: number }) => speed);
const refusedOf = async (key: string) => (await service.admin('GET', `objects/${key}/refused`)).body;
const received = async (): Promise<number[]> => {
  await service.settled();
  return (eventsOf(listener.take()) as { payload: { speed: number } }[]).map(({ payload }) => payload.speed);
};

/** The error of an array of which nothing is stored. */
function expectAllRefused({ status, body }: Answer, mention: string, indexes: readonly number[]): void {
  expect({ status, body }).toEqual({
    status: 400,
    body: {
      ...refusal(400),
      helper: { message: expect.stringContaining(mention) },
      count: 0,
      refused: indexes.map((index) => ({ index, reason: expect.any(String) })),
    },
  });
}

const BAD: [what: string, item: unknown, reason: string][] = [
  ['a wrong type', { speed: 'fast' }, "speed: expected number, as the object's model declares it"],
  ['no time', { time: 'soon', speed: 9 }, 'time: expected a time'],
  ['a date in digits', { time: 20_261_123 }, 'time: these digits look like a date'],
  ['an object as its time', { time: { toString: 1 } }, 'time: expected a time'],
  ['an operator', { speed: { $x: 1 } }, '"speed.$x": a field name may not'],
  ['a reserved name', JSON.parse('{"a":{"__proto__":1}}'), '"a.__proto__": a field name may not'],
  ['a number without bounds', '{"speed":1e999}', '"speed": the number is too large'],
  ['ill-formed text', { a: '\ud800' }, '"a": the text is not well-formed Unicode'],
  ['too many bytes', { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) }, 'a packet has at most 65536 bytes'],
  ['no object: a number', 5, 'a packet: expected a JSON object'],
  ['no object: null', null, 'a packet: expected a JSON object'],
  ['no object: a list', [], 'a packet: expected a JSON object'],
];
/** As JSON; text is JSON already. */
const textOf = (...items: unknown[]): string =>
  `[${items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join(',')}]`;

describe('a packet of an array', () => {
  test.each(BAD)('is refused alone for %s', async (_, item, reason) => {
    const object = await create();
    const refused = { index: 1, reason: expect.stringContaining(reason) };
    const answer = await post(object.id, textOf({ speed: 1 }, item, { speed: 3 }));
    expect(answer).toMatchObject({ status: 200, body: { success: true, count: 2, refused: [refused] } });
    expect(await speedsOf(object.id)).toEqual([1, 3]);
    expect(await received()).toEqual([1, 3]);
    expect(await refusedOf(object.id)).toEqual([{ time: NOW, via: 'http', topic: null, ...refused }]);
  });

  test.each(BAD)('is refused with all others with atomic=true for %s', async (_, item, reason) => {
    const object = await create();
    const answer = await post(object.id, textOf({ speed: 1 }, item, { speed: 3 }), '?atomic=true');
    const refused = { index: 1, reason: expect.stringContaining(reason) };
    expectAllRefused(answer, `[1]: ${reason}`, [1]);
    expect(await speedsOf(object.id)).toEqual([]);
    expect(await received()).toEqual([]);
    expect(await refusedOf(object.id)).toEqual([{ time: NOW, via: 'http', topic: null, ...refused }]);
  });

  test.each(BAD)('answers 400 if it is the only one and refused for %s', async (_, item, reason) => {
    const object = await create();
    const answer = await post(object.id, textOf(item));
    expectAllRefused(answer, `[0]: ${reason}`, [0]);
    expect(await speedsOf(object.id)).toEqual([]);
    expect(await received()).toEqual([]);
  });
});

test('stores the good ones of ten thousand, and names the others in their order', async () => {
  const object = await create();
  const isBad = (n: number): boolean => n % 100 === 7;
  const many = Array.from({ length: 10_000 }, (_, n) => ({
    time: n,
    speed: isBad(n) ? 'x' : n,
    ...(n === 300 && { a: 'x'.repeat(60_000), b: 'x'.repeat(9_000) }),
  }));
  const { status, body } = await post(object.id, many);
  const indexes = body.refused.map(({ index }: { index: number }) => index);
  expect([status, body.count, indexes.length]).toEqual([200, 9_899, 101]);
  expect(indexes).toEqual(many.map((_, n) => n).filter((n) => isBad(n) || n === 300));
  expect((await speedsOf(object.id)).length).toBe(9_899);
  const refused = await refusedOf(object.id);
  expect(refused.map(({ index }: { index: number }) => index)).toEqual(indexes.slice(-100));
});

test('answers many packets with many faults each in bounded length', async () => {
  const object = await create();
  const faults = Object.fromEntries(Array.from({ length: 499 }, (_, n) => [`$${n}`, 1]));
  const many = Array.from({ length: 400 }, (_, n) => (n % 2 === 0 ? faults : { ...faults, speed: n }));
  const { status, body, text } = await post(object.id, many);
  expect([status, body.count, body.refused.length, body.incomplete.length]).toEqual([200, 200, 200, 200]);
  for (const { reason } of body.refused.concat(body.incomplete)) {
    expect(reason.length).toBeLessThanOrEqual(LIMITS.refusedReasonCharacters);
    expect(reason).toMatch(/^"\$0": .*; and 494 more$/);
  }
  expect(text.length).toBeLessThan(400 * (LIMITS.refusedReasonCharacters + 100));
  const kept = (await refusedOf(object.id)).map(({ reason }: { reason: string }) => reason);
  expect(kept).toHaveLength(LIMITS.refusedPerObject);
  for (const reason of kept) expect(reason).toMatch(/; and 494 more(; the other fields are stored)?$/);
});

test('names a packet that is too large without its bad field only as refused', async () => {
  const object = await create();
  const large = { speed: 1, $x: 1, a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) };
  const { body } = await post(object.id, [large, { speed: 2 }]);
  const refused = [{ index: 0, reason: expect.stringContaining('a packet has at most 65536 bytes') }];
  expect(body).toEqual({ success: true, count: 1, refused });
  expect(await refusedOf(object.id)).toMatchObject(refused);
  expect(await refusedOf(object.id)).toHaveLength(1);
});

test('says how many are refused if all are', async () => {
  const object = await create();
  const answer = await post(object.id, [{ speed: 'x' }, 5, { time: 'x' }]);
  const mention = "[0]: speed: expected number, as the object's model declares it; and 2 more";
  expectAllRefused(answer, mention, [0, 1, 2]);
});

test('answers an array without faults as before, also with atomic=true', async () => {
  const object = await create();
  for (const query of ['', '?atomic=true', '?atomic=false', '?atomic=0']) {
    expect((await post(object.id, [{ speed: 1 }, { speed: 2 }], query)).body).toEqual({ success: true, count: 2 });
  }
  expect((await post(object.id, [])).body).toEqual({ success: true, count: 0 });
  expectRefusal(await post(object.id, [{ speed: 1 }], '?atomic=maybe'), 400, 'atomic: expected true or false');
  expect((await speedsOf(object.id)).length).toBe(8);
  expect(await refusedOf(object.id)).toEqual([]);
});

test('stores a repeated packet beside a refused one once', async () => {
  const object = await create();
  const sent = { _id: '65a00000000000000000000a', speed: 1 };
  await post(object.id, sent);
  const { body } = await post(object.id, [sent, { speed: 'x' }]);
  expect(body).toMatchObject({ count: 1, refused: [{ index: 1 }] });
  expect(await speedsOf(object.id)).toEqual([1]);
});

describe('a body without content', () => {
  const chunks = (text: string): ReadableStream =>
    new ReadableStream({
      start(controller) {
        if (text !== '') controller.enqueue(Buffer.from(text));
        controller.close();
      },
    });
  test.each<[what: string, type: string | null, body: string | ReadableStream | undefined]>([
    ['absent', null, undefined],
    ['absent, with a type', 'application/json', undefined],
    ['of length 0', 'application/json', ''],
    ['chunked', 'application/json', chunks('')],
    ['blank', 'application/json', ' \n'],
    ['blank and chunked', 'application/json', chunks(' \n')],
  ])('stores nothing: %s', async (_, type, body) => {
    const object = await create();
    const headers = new Headers({ authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` });
    if (type !== null) headers.set('content-type', type);
    const request: RequestInit = { method: 'POST', headers, body: body ?? null, duplex: 'half' };
    const answer = await fetch(`${service.url}/api/v1/objects/${object.id}/packets`, request);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { ...refusal(400), helper: { message: expect.stringMatching(/^the body is (empty|not valid JSON)/) } },
    ]);
    expect(await speedsOf(object.id)).toEqual([]);
    expect(await received()).toEqual([]);
  });

  test('is different from an empty packet, which says that the device is online', async () => {
    const object = await create();
    expect(entityOf(await post(object.id, {}))).toMatchObject({ online: true });
    expect(await speedsOf(object.id)).toHaveLength(1);
  });
});

describe('the refused packets of an object', () => {
  test('include single ones, and are laid out as a list', async () => {
    const object = await create();
    const path = `objects/${object.id}/refused`;
    expect((await service.admin('GET', path)).text).toBe('[\n]\n');
    await post(object.id, { speed: 'x' });
    await post(object._id, { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) });
    const { text, body } = await service.admin('GET', path);
    expect(text).toMatch(/^\[\n\{.*\}\n,\n\{.*\}\n\]\n$/);
    expect(body).toEqual([
      { time: NOW, via: 'http', topic: null, index: null, reason: expect.stringMatching(/^speed: expected number/) },
      {
        time: NOW,
        via: 'http',
        topic: null,
        index: null,
        reason: expect.stringMatching(/^a packet has at most 65536/),
      },
    ]);
  });

  test('are the last hundred, with reasons of bounded length', async () => {
    const object = await create();
    for (const from of [0, 60, 120]) {
      const bad = Array.from({ length: 60 }, (_, n) => ({ [`${'n'.repeat(90)}${from + n}`]: { $a: 1 } }));
      expect((await post(object.id, bad)).status).toBe(400);
      await refusedOf(object.id);
    }
    const refused = await refusedOf(object.id);
    expect(refused).toHaveLength(LIMITS.refusedPerObject);
    expect(refused.at(-1).reason).toContain('n179.$a');
    expect(refused[0].reason).toContain('n80.$a');
    const deep = Array.from({ length: 10 }).reduce<unknown>((inner) => ({ ['k'.repeat(128)]: inner }), { $a: 1 });
    await post(object.id, [deep]);
    expect((await refusedOf(object.id)).at(-1).reason.length).toBeLessThanOrEqual(LIMITS.refusedReasonCharacters);
  });

  test('are those of this object, and go with it', async () => {
    const mine = await create();
    const other = await create();
    await post(mine.id, { speed: 'x' });
    expect(await refusedOf(mine.id)).toHaveLength(1);
    expect(await refusedOf(other.id)).toEqual([]);
    expectRefusal(await service.admin('GET', 'objects/nowhere/refused'), 404);
    await service.admin('DELETE', `objects/${mine.id}`);
    expectRefusal(await service.admin('GET', `objects/${mine._id}/refused`), 404);
    const stored = service.client.db().collection('refusedPackets');
    const all = async () => (await stored.find().toArray()).map(({ _id }) => String(_id));
    await until(async () => !(await all()).includes(mine._id), 'the removal');
  });
});
