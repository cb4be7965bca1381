/** Notes on objects: who reads and writes them, their bounds, and that they go where their object goes. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { createPerson, NOT_FOUND, type Person } from '../support/callers.js';
import { type Answer, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const TIME_MS = Date.parse('2026-11-23T09:10:00Z');
const MINUTE_MS = 60_000;
let count = 0;
let group: string;
let operator: Person;
let viewer: Person;
let stranger: Person;

async function must(answer: Promise<Answer>) {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body;
}

const newGroup = async (name: string) => (await must(service.admin('POST', 'groups', { name })))._id as string;

async function newObject(inGroup = group): Promise<string> {
  const id = `noted-${++count}`;
  return (await must(service.admin('POST', 'objects', { id, name: id, group: inGroup })))._id;
}

beforeAll(async () => {
  group = await newGroup('depot');
  operator = await createPerson(service, { role: OPERATOR_ROLE_ID, group });
  viewer = await createPerson(service, { role: VIEWER_ROLE_ID, group });
  stranger = await createPerson(service, { role: OPERATOR_ROLE_ID, group: await newGroup('elsewhere') });
});

const write = (object: string, body: object = { text: 'Seen' }, by = operator) =>
  must(by.call('POST', `objects/${object}/notes`, body));
const textsOf = async (object: string, query = '', by = viewer): Promise<string[]> =>
  (await must(by.call('GET', `objects/${object}/notes${query}`))).map(({ text }: { text: string }) => text);

describe('a note', () => {
  test('says what it is about, who wrote it, and when', async () => {
    const object = await newObject();
    const toMs = TIME_MS + 30 * MINUTE_MS;
    const body = { text: 'The door was open', time: '2026-11-23T09:10', to: toMs };
    const note = await write(object, body);
    expect(note).toEqual({
      success: true,
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      object,
      time: TIME_MS,
      to: toMs,
      text: 'The door was open',
      author: operator.login,
      created: expect.any(Number),
    });
    const { success: _, ...stored } = note;
    expect(await must(viewer.call('GET', `objects/${object}/notes`))).toEqual([stored]);
    // The store has the notes of all objects.
    expect(await must(viewer.call('GET', `notes?where.object=${object}&only=text,author`))).toEqual([
      { _id: note._id, text: 'The door was open', author: operator.login },
    ]);
  });

  test('is about now without a time, also for the own id of the object', async () => {
    await newObject();
    const { time, to, created } = await write(`noted-${count}`);
    expect([to, time]).toEqual([null, created]);
  });

  test.each<[body: object, field: RegExp]>([
    [{}, /^text: /],
    [{ text: '' }, /^text: /],
    [{ text: '  ' }, /^text: /],
    [{ text: 7 }, /^text: /],
    [{ text: 'x'.repeat(LIMITS.noteCharacters + 1) }, /^text: .*2000/],
    [{ text: 'x', time: 'yesterday' }, /^time: /],
    [{ text: 'x', time: 17 * 10 ** 8 }, /^time: /],
    [{ text: 'x', time: [] }, /^time: /],
    [{ text: 'x', time: TIME_MS, to: TIME_MS - 1 }, /^to: /],
    [{ text: 'x', to: {} }, /^to: /],
  ])('is refused as %j', async (body, field) => {
    const object = await newObject();
    const answer = await operator.call('POST', `objects/${object}/notes`, body);
    expect([answer.status, answer.body.helper.message]).toEqual([400, expect.stringMatching(field)]);
    expect(await textsOf(object)).toEqual([]);
  });

  test('is one of so many of an object', async () => {
    const object = await newObject();
    const { _id, ...first } = await storedOf(object);
    const more = Array.from({ length: LIMITS.notesPerObject - 2 }, () => ({ ...first }));
    await service.client.db().collection('notes').insertMany(more);
    const atOnce = Array.from({ length: 4 }, () => operator.call('POST', `objects/${object}/notes`, { text: 'x' }));
    expect((await Promise.all(atOnce)).map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const answer = await operator.call('POST', `objects/${object}/notes`, { text: 'x' });
    expect([answer.status, answer.body.helper.message]).toEqual([409, expect.stringMatching(/remove one first/)]);
    expect(await textsOf(object)).toHaveLength(LIMITS.notesPerObject);
    await must(operator.call('DELETE', `objects/${object}/notes/${_id}`));
    await write(object);
  });
});

async function storedOf(object: string) {
  const { _id } = await write(object);
  const found = await service.client.db().collection('notes').find().sort({ _id: -1 }).limit(1).next();
  if (String(found?._id) !== _id) throw new Error('the note is not stored');
  return found as NonNullable<typeof found>;
}

test('lists the notes about any of an interval, the newest first', async () => {
  const object = await newObject();
  const at = (minutes: number): number => TIME_MS + minutes * MINUTE_MS;
  for (const [text, from, to] of [
    ['before', 0, null],
    ['into', 5, 10],
    ['within', 12, null],
    ['out of', 19, 30],
    ['after', 21, null],
    ['around', 1, 40],
  ] as const) {
    await write(object, { text, time: at(from), ...(to !== null && { to: at(to) }) });
  }
  const interval = `?from=${at(10)}&to=${at(20)}`;
  expect(await textsOf(object, interval)).toEqual(['out of', 'within', 'into', 'around']);
  expect(await textsOf(object, `?from=${at(21)}`)).toEqual(['after', 'out of', 'around']);
  expect(await textsOf(object)).toEqual(['after', 'out of', 'within', 'into', 'around', 'before']);
});

describe('rights', () => {
  test('follow the object: who sees it reads its notes, who has the right writes and removes them', async () => {
    const object = await newObject();
    const { _id } = await write(object);
    const path = `objects/${object}/notes`;
    const statuses = async (who: Person) => [
      (await who.call('GET', path)).status,
      (await who.call('GET', `notes/${_id}`)).status,
      (await who.call('POST', path, { text: 'x' })).status,
      (await who.call('DELETE', `${path}/${'a'.repeat(24)}`)).status,
    ];
    expect(await statuses(operator)).toEqual([200, 200, 200, 404]);
    expect(await statuses(viewer)).toEqual([200, 200, 403, 403]);
    expect(await statuses(stranger)).toEqual([404, 404, 404, 404]);
    expect((await stranger.call('DELETE', `${path}/${_id}`)).body).toEqual(NOT_FOUND);
    const other = await newObject();
    expect((await operator.call('DELETE', `objects/${other}/notes/${_id}`)).status).toBe(404);
    expect(await textsOf(object)).toContain('Seen');
  });

  test('come and go with the sharing of the object, and move with it', async () => {
    const object = await newObject();
    const { _id } = await write(object);
    await must(service.admin('POST', `objects/${object}/access`, { user: stranger.id }));
    expect(await textsOf(object, '', stranger)).toEqual(['Seen']);
    const own = await write(object, { text: 'By a guest' }, stranger);
    await must(service.admin('DELETE', `objects/${object}/access/${stranger.id}`));
    // Also what a guest wrote: it follows the object, not its author.
    expect((await stranger.call('GET', `notes/${own._id}`)).status).toBe(404);
    expect((await stranger.call('GET', `notes/${_id}`)).status).toBe(404);
    const { body: moved } = await service.admin('GET', `users/${stranger.id}?only=group`);
    await must(service.admin('POST', `objects/${object}/move`, { group: moved.group }));
    expect(await textsOf(object, '', stranger)).toEqual(expect.arrayContaining(['Seen', 'By a guest']));
    expect((await viewer.call('GET', `notes/${_id}`)).status).toBe(404);
  });

  test('are those of a token of one object', async () => {
    const object = await newObject();
    const scopes = [`GET /objects/${object}/notes`, `POST /objects/${object}/notes`];
    const { token } = await must(operator.call('POST', 'account/tokens', { name: 'Kiosk', scopes }));
    const kiosk = service.as(token);
    expect((await kiosk('POST', `objects/${object}/notes`, { text: 'By a kiosk' })).status).toBe(200);
    expect((await kiosk('GET', `objects/${object}/notes`)).body).toHaveLength(1);
    expect((await kiosk('GET', `objects/${await newObject()}/notes`)).status).toBe(403);
    expect((await kiosk('DELETE', `objects/${object}/notes/${'a'.repeat(24)}`)).status).toBe(403);
  });
});

test('goes with its object, and its writing and removal are security events', async () => {
  const object = await newObject();
  const first = await write(object);
  const second = await write(object);
  await must(operator.call('DELETE', `objects/${object}/notes/${first._id}`));
  await must(service.admin('DELETE', `objects/${object}`));
  expect((await service.admin('GET', `notes?where.object=${object}`)).body).toEqual([]);
  expect((await service.admin('GET', `notes/${second._id}`)).status).toBe(404);
  expect((await operator.call('POST', `objects/${object}/notes`, { text: 'x' })).status).toBe(404);
  await until(async () => {
    const { body } = await service.admin('GET', `audit?where.entity=${first._id}`);
    return body.length === 2;
  }, 'two events');
  const { body } = await service.admin('GET', `audit?where.entity=${first._id}&only=action,login,path`);
  expect(body).toEqual([
    { _id: expect.any(String), action: 'note added', login: operator.login, path: `/objects/${object}/notes` },
    {
      _id: expect.any(String),
      action: 'note removed',
      login: operator.login,
      path: `/objects/${object}/notes/${first._id}`,
    },
  ]);
});
