/** Requests as clients of other platforms with this interface send them, unmodified; each row says where it comes from. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();

/** Reads a list as a streaming client does: line by line, each line by itself a bracket, a comma or a whole element. */
function readLines(text: string): unknown[] {
  expect(text.endsWith('\n')).toBe(true);
  const lines = text.split('\n').slice(0, -1);
  return lines.filter((line) => !['[', ',', ']'].includes(line)).map((line) => JSON.parse(line));
}

describe('a client that reads lists line by line', () => {
  beforeAll(async () => {
    const post = (path: string, body: object) => service.admin('POST', path, body);
    for (const id of ['one', 'two']) await post('objects', { id: `streamed-${id}`, name: 'Streamed' });
    await post('objects/streamed-one/packets', [{ n: 1 }, { n: 2, text: 'a\n,\n]' }, { n: 3 }]);
    for (const command of ['open', 'close']) await post(`objects/streamed-one/commands/${command}`, {});
    await post('stores', { name: 'streams' });
    for (const n of [1, 2]) await post('streams', { n });
  });

  test.each<[path: string, count: number]>([
    ['objects?where.name=Streamed&streamed=true&nolimit=true', 2],
    ['objects?where.name=Streamed&limit=1', 1],
    ['objects?where.name=missing', 0],
    ['objects?limit=0', 0],
    ['objects/streamed-one/packets?streamed=true&nolimit=true', 3],
    ['objects/streamed-one/packets?only=n', 3],
    ['objects/streamed-one/packets?limit=0', 0],
    ['objects/streamed-two/packets', 0],
    ['objects/streamed-one/commands?status=queued', 2],
    ['commands?where.command=open,close', 2],
    ['roles?only=name', 4],
    ['streams', 2],
  ])('reads every element of %s', async (path, count) => {
    const { text, body, headers } = await service.admin('GET', path);
    expect(readLines(text)).toEqual(body);
    expect(body).toHaveLength(count);
    expect(headers['content-length']).toBe(String(Buffer.byteLength(text)));
  });

  test('reads every event of a page of live events', async () => {
    const { position } = (await service.admin('GET', 'events')).body;
    await service.admin('POST', 'objects/streamed-two/packets', [{ n: 1 }, { n: 2 }]);
    const { text, body } = await service.admin('GET', `events?since=${position}&wait=5`);
    const [first, ...rest] = text.split('\n');
    expect(first).toBe('{"events":[');
    expect(rest.slice(0, body.events.length * 2 - 1)).toEqual(
      body.events.flatMap((event: object, at: number) => [...(at === 0 ? [] : [',']), JSON.stringify(event)]),
    );
  });
});

interface Row {
  /** Where it comes from, in words. */
  readonly from: string;
  readonly asked: readonly [method: string, path: string, body?: object];
  readonly status?: number;
  /** What the answer holds. */
  readonly holds: unknown;
}

describe('a filter of another platform', () => {
  beforeAll(async () => {
    const bots = [
      { type: 'bot:mqtt', config: { position: { display: null }, settings: { number: 1 } } },
      { type: 'bot:http', config: { position: { display: 'state' } } },
    ];
    for (const [at, fields] of bots.entries()) {
      await service.admin('POST', 'objects', { id: `bot-${at}`, name: 'Bot', ...fields });
    }
  });

  test.each<Row>([
    {
      from: 'a flow builder, by type: `where_` before the field',
      asked: ['GET', 'objects?where_type=bot:mqtt&limit=50&only=id,type'],
      holds: [{ id: 'bot-0', type: 'bot:mqtt' }],
    },
    {
      from: 'the same, by a nested field',
      asked: ['GET', 'objects?where_name=Bot&where_config.settings.number=1&only=id'],
      holds: [{ id: 'bot-0' }],
    },
    {
      from: 'the same, both spellings together',
      asked: ['GET', 'objects?where_name=Bot&where.config.position.display=state&only=id'],
      holds: [{ id: 'bot-1' }],
    },
    {
      from: 'a form whose times were left empty',
      asked: ['GET', 'objects?where_type=bot:http&from=&to=&only=id'],
      holds: [{ id: 'bot-1' }],
    },
    {
      from: 'the same, of packets',
      asked: ['GET', 'objects/bot-0/packets?begin=&end='],
      holds: [],
    },
  ])('is supported from $from', async ({ asked: [method, path], holds }) => {
    const { status, body } = await service.admin(method, path);
    expect([status, body.map(({ _id, ...rest }: { _id: string }) => rest)]).toEqual([200, holds]);
  });
});

describe('a user with `disabled`', () => {
  const PASSWORD = 'a password of eight';
  const logsIn = async (login: string): Promise<number> =>
    (await service.as(null)('POST', 'auth/token', { login, password: PASSWORD })).status;

  test('is not active and cannot log in', async () => {
    const user = { login: 'disabled-1', password: PASSWORD, disabled: true };
    const { status, body } = await service.admin('POST', 'users', user);
    expect([status, body.active, Object.hasOwn(body, 'disabled')]).toEqual([200, false, false]);
    expect(await logsIn('disabled-1')).toBe(401);
  });

  test('loses all tokens, and can log in again with `false`', async () => {
    const user = { login: 'disabled-2', password: PASSWORD, disabled: false };
    const { body } = await service.admin('POST', 'users', user);
    expect(body.active).toBe(true);
    const call = service.as(await service.tokenOf('disabled-2', PASSWORD));
    expect((await call('GET', 'auth')).status).toBe(200);
    // Read, edited and sent back whole: what was just set counts.
    const changed = await service.admin('PATCH', `users/${body._id}`, { ...body, disabled: true });
    expect([changed.status, changed.body.active]).toEqual([200, false]);
    expect([(await call('GET', 'auth')).status, await logsIn('disabled-2')]).toEqual([401, 401]);
    const back = await service.admin('PATCH', `users/${body._id}`, { ...changed.body, disabled: false });
    expect([back.body.active, await logsIn('disabled-2')]).toEqual([true, 200]);
  });

  test('is never the caller itself', async () => {
    const { body } = await service.admin('GET', 'auth');
    expect((await service.admin('PATCH', `users/${body._id}`, { disabled: true })).status).toBe(409);
    expect((await service.admin('PATCH', `users/${body._id}`, { disabled: 'yes' })).body.helper.message).toMatch(
      /^disabled: /,
    );
  });
});

describe('scopes of an edge client, `GET models/:id` and `GET objects/:id`', () => {
  test.each<[path: string, status: number]>([
    ['objects/edge-1', 200],
    ['models/000000000000000000000010', 200],
    ['objects', 403],
    ['objects/edge-1/packets', 403],
    ['users', 403],
  ])('answer GET %s with %i', async (path, status) => {
    await service.admin('POST', 'objects', { id: 'edge-1', name: 'Edge' });
    const scopes = ['GET models/:id', 'GET objects/:id'];
    const { body } = await service.admin('POST', 'tokens', { name: 'edge', scopes });
    expect(body.scopes).toEqual(scopes);
    expect((await service.as(body.token)('GET', path)).status).toBe(status);
  });

  test('permit commands to every object and their events, as credentials of a role', async () => {
    const credentials = ['POST objects/:id/commands/:command', 'GET objects/:id'];
    const role = (await service.admin('POST', 'roles', { name: 'foreign', credentials })).body._id;
    await service.admin('POST', 'users', { login: 'foreign-1', password: 'a password of eight', role });
    await service.admin('POST', 'objects', { id: 'edge-2', name: 'Edge' });
    const token = await service.tokenOf('foreign-1', 'a password of eight');
    // Later listeners do not receive what the tests before have changed.
    await service.settled();
    const listener = await service.listen(token);
    expect((await service.as(token)('POST', 'objects/edge-2/commands/open', {})).status).toBe(200);
    await service.settled();
    expect(listener.take().map(({ name }) => name)).toEqual(['object-command-req']);
    listener.close();
  });
});

describe('an entity exported by another installation', () => {
  const GROUP = '5190951088b5078432000001';

  test('is refused with the field if its group does not exist', async () => {
    const { status, body } = await service.admin('POST', 'models', { name: 'Exported', group: GROUP });
    expect([status, body.helper.message]).toEqual([
      400,
      'group: not a group of yours; without it, or with ?group=mine, the entity belongs to your own group',
    ]);
  });

  test.each(['models', 'objects', 'labels'])('is created in %s with ?group=mine', async (store) => {
    const own = { _id: '61c5796938944e0010fc7d3e', id: `exported-${store}`, name: 'Exported', group: GROUP };
    const { status, body } = await service.admin('POST', `${store}?group=mine`, { ...own, branch: [GROUP] });
    expect([status, body.group, body._id === own._id]).toEqual([200, '000000000000000000000001', false]);
  });

  test('is refused with any other group in the query', async () => {
    const { status, body } = await service.admin('POST', 'labels?group=yours', { name: 'x' });
    expect([status, body.helper.message]).toEqual([400, expect.stringMatching(/^group: expected "mine"/)]);
  });
});
