/** Past events as lists: the events of an interval, for callers with permission. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();
const START = Date.now() - 1;
const PASSWORD = 'a password of eight';
let truck = '';
let other = '';
let model = '';

interface PastEvent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
  readonly data: any;
  readonly time: number;
  readonly position?: string;
}

const ask = async (path: string): Promise<PastEvent[]> => (await service.admin('GET', path)).body;
const namesOf = (events: readonly PastEvent[]): string[] => events.map(({ event }) => event);

beforeAll(async () => {
  const post = async (path: string, body: object) => (await service.admin('POST', path, body)).body;
  const children = [
    { id: 'speed', name: 'Speed', type: 'argument', dataType: 'number' },
    { id: 'open', name: 'Open', type: 'action' },
  ];
  model = (await post('models', { name: 'Truck', data: { id: 'root', type: 'subsystem', children } }))._id;
  truck = (await post('objects', { id: 'past-1', name: 'One', model }))._id;
  other = (await post('objects', { id: 'past-2', name: 'Two' }))._id;
  await post('objects/past-1/packets', { speed: 1 });
  await post('objects/past-1/packets', { online: false });
  await post('objects/past-1/packets', { online: true });
  await post('objects/past-2/packets', { n: 1 });
  await service.admin('PATCH', 'objects/past-1', { status: 'moved' });
  const { headers } = await service.admin('POST', 'objects/past-1/commands/open', {});
  const id = headers.location?.split('/').at(-1);
  await post(`objects/past-1/commands/${id}/result`, { status: 'done' });
  await service.settled();
});

const ALL = [
  'object-created',
  'object-packet',
  'object-offline',
  'object-online',
  'object-update',
  'object-command-req',
  'object-command-res',
];

describe('an interval of events', () => {
  test('contains packets, presence, changes, commands and their results, by time', async () => {
    const events = await ask(`events?from=${START}&to=${Date.now()}&objects=past-1`);
    expect(namesOf(events)).toEqual(ALL);
    expect(events.map(({ time }) => time)).toEqual(events.map(({ time }) => time).sort((a, b) => a - b));
    const [created, packet, offline, , update, request, end] = events as [
      PastEvent,
      PastEvent,
      PastEvent,
      PastEvent,
      PastEvent,
      PastEvent,
      PastEvent,
    ];
    expect(created.data).toMatchObject({ id: truck, object: { _id: truck, id: 'past-1', status: '' } });
    expect(packet.data).toMatchObject({ _oid: truck, id: 'past-1', speed: 1, time: packet.time });
    expect(offline.data).toMatchObject({ _oid: truck, online: false });
    expect(update.data).toEqual({ id: truck, before: { status: '' }, after: { status: 'moved' } });
    expect(update.position).toMatch(/^[\w-]+$/);
    expect([request.data.id, end.data]).toMatchObject([
      truck,
      { id: truck, command: { command: 'open', status: 'done' } },
    ]);
  });

  test.each<[query: string, names: string[]]>([
    [
      'events=object-online,object-offline&events!=object-command-req,object-command-res',
      ['object-offline', 'object-online'],
    ],
    ['events=object-online,user-signin', ['object-online']],
    ['events=user-signin', []],
    ['events!=object-update,object-insert', ALL.filter((name) => name !== 'object-update')],
    ['events=&events!=', ALL],
    ['limit=2', ALL.slice(0, 2)],
    ['limit=0', []],
  ])('contains exactly the requested events with %s', async (query, names) => {
    expect(namesOf(await ask(`objects/past-1/events?from=${START}&${query}`))).toEqual(names);
  });

  test('is read page by page, each event once', async () => {
    const found: PastEvent[] = [];
    for (let path = `/api/v1/events?from=${START}&limit=2&objects=past-1,past-2`; path !== ''; ) {
      const { body, headers } = await service.admin('GET', path);
      found.push(...body);
      path = /^<(.*)>; rel="next"$/.exec(headers.link ?? '')?.[1] ?? '';
    }
    expect(found).toEqual(await ask(`events?from=${START}&objects=past-1,past-2`));
    expect(found).toHaveLength(ALL.length + 2);
  });

  test('has the form of every list, and may be empty or open', async () => {
    const { text, body } = await service.admin('GET', `objects/${truck}/events`);
    expect(namesOf(body)).toEqual(ALL);
    expect(text).toBe(`[\n${body.map((one: PastEvent) => JSON.stringify(one)).join('\n,\n')}\n]\n`);
    expect((await service.admin('GET', 'events?from=1&to=2')).text).toBe('[\n]\n');
    expect(Object.keys((await service.admin('GET', 'events?from=&to=')).body)).toEqual(['events', 'position']);
  });

  test.each(['from=soon', 'limit=-1', 'after=x'])('is refused with %s', async (query) => {
    const { status, body } = await service.admin('GET', `objects/past-1/events?${query}`);
    expect([status, body.helper.message]).toEqual([400, expect.stringContaining(query.split('=')[0] as string)]);
  });
});

test('contains no events of objects that the caller does not see or may not read', async () => {
  const group = (await service.admin('POST', 'groups', { name: 'past' })).body._id;
  await service.admin('POST', 'users', { login: 'past', password: PASSWORD, group });
  const call = service.as(await service.tokenOf('past', PASSWORD));
  expect((await call('GET', `events?from=${START}&objects=past-1`)).body).toEqual([]);
  expect((await call('GET', 'objects/past-1/events')).status).toBe(404);
  const { body } = await service.admin('POST', 'tokens', { name: 'past', scopes: ['GET /objects/past-2/*'] });
  const narrow = await service.as(body.token)('GET', `events?from=${START}&events=object-packet`);
  expect(narrow.body.map(({ data }: PastEvent) => data._oid)).toEqual([other]);
});

test('lists the known events in an error', async () => {
  const { body } = await service.admin('GET', 'events/org');
  expect(body).toEqual({ unique: expect.arrayContaining([...ALL, 'object-command-err']), noModel: [] });
});

test('returns the model of an object with its declarations as lists', async () => {
  const { body } = await service.admin('GET', 'objects/past-1/model?only=model');
  expect(body).toMatchObject({ _id: model, name: 'Truck', success: true, _configs: [] });
  expect([body._arguments, body._actions]).toMatchObject([[{ id: 'speed' }], [{ id: 'open' }]]);
});

test('is read page by page, though everything happened within one second', async () => {
  const from = Date.now();
  await Promise.all(
    Array.from({ length: 6 }, (_, at) => service.admin('PATCH', `objects/past-${1 + (at % 2)}`, { at })),
  );
  await service.settled();
  const ofUpdates = `from=${from}&objects=past-1,past-2&events=object-update`;
  const found: PastEvent[] = [];
  for (let path = `events?${ofUpdates}&limit=1`; path !== '' && found.length < 10; ) {
    const { body, headers } = await service.admin('GET', path);
    found.push(...body);
    path = /^<(.*)>; rel="next"$/.exec(headers.link ?? '')?.[1] ?? '';
  }
  expect(found.map(({ position }) => position)).toEqual(
    (await ask(`events?${ofUpdates}`)).map(({ position }) => position),
  );
  expect(found).toHaveLength(6);
});
