/** Objects that become visible or invisible to a caller: live, for resuming clients, and as past events. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { openListener, type ReceivedEvent, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
let groups: Record<'north' | 'south', string>;
let people: Record<'north' | 'south' | 'root', Person>;
let count = 0;
const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const newObject = (group: string, fields: object = {}) =>
  make('objects', { id: `appearing-${++count}`, name: 'O', group, ...fields });

beforeAll(async () => {
  groups = {
    north: (await make('groups', { name: 'north' }))._id,
    south: (await make('groups', { name: 'south' }))._id,
  };
  people = {
    north: await createPerson(service, { group: groups.north, role: VIEWER_ROLE_ID }),
    south: await createPerson(service, { group: groups.south, role: VIEWER_ROLE_ID }),
    root: await createPerson(service, { role: ADMINISTRATOR_ROLE_ID }),
  };
});

/** Name and object of each event. */
const brief = (received: readonly ReceivedEvent[]) =>
  received.map(({ name, payload }) => [name, payload.object?.name ?? payload.after?.name ?? payload.n ?? payload.id]);

/** What happens to one object, and which events each person receives. */
async function story() {
  const moving = await make('groups', { name: 'moving', parent: groups.north });
  const { _id } = await newObject(moving._id, { name: 'new' });
  await service.admin('PATCH', `objects/${_id}`, { name: 'changed' });
  await service.admin('PATCH', `groups/${moving._id}`, { parent: groups.south });
  await service.admin('POST', `objects/${_id}/packets`, { n: 1 });
  await service.admin('POST', `objects/${_id}/access`, { user: people.north.id });
  await service.admin('PATCH', `objects/${_id}`, { name: 'shared' });
  await service.admin('DELETE', `objects/${_id}/access/${people.north.id}`);
  await service.admin('DELETE', `objects/${_id}`);
  await service.settled();
  return _id as string;
}

const EVENTS = (id: string) => ({
  north: [
    ['object-created', 'new'],
    ['object-update', 'changed'],
    ['object-removed', id],
    ['object-created', 'changed'],
    ['object-update', 'shared'],
    ['object-removed', id],
  ],
  south: [
    ['object-created', 'changed'],
    ['object-packet', 1],
    ['object-update', id],
    ['object-update', 'shared'],
    ['object-update', id],
    ['object-removed', id],
  ],
});

test('sends object-created and object-removed exactly when an object becomes visible or invisible', async () => {
  const listeners = {
    north: await service.listen(people.north.token, 'everything'),
    south: await service.listen(people.south.token, 'everything'),
    root: await service.listen(people.root.token, 'everything'),
  };
  const id = await story();
  const { north, south } = EVENTS(id);
  expect(brief(listeners.north.take())).toEqual(north);
  expect(brief(listeners.south.take())).toEqual(south);
  const names = listeners.root.received().map(({ name }) => name);
  expect([
    names.filter((name) => name === 'object-created'),
    names.filter((name) => name === 'object-removed'),
  ]).toEqual([['object-created'], ['object-removed']]);
  const positions = listeners.root.take().map(({ position }) => position);
  expect(new Set(positions).size).toBe(positions.length);
});

test('sends a new object as a read returns it, without secrets', async () => {
  const listener = await service.listen(people.root.token, 'everything');
  const config = { auth: { username: 'device', password: 'canary-of-a-device' } };
  const object = await newObject(groups.north, { config });
  await service.settled();
  const [created] = listener.take();
  expect(created).toMatchObject({ name: 'object-created', payload: { id: object._id, object } });
  expect(JSON.stringify(created)).not.toContain('canary-of-a-device');
});

test('sends a resuming client only the removal of a removed object', async () => {
  const before = await service.listen(people.north.token, 'everything');
  const kept = await newObject(groups.north, { name: 'kept' });
  await service.settled();
  const since = before.take().at(-1)?.position as string;
  before.close();
  const gone = await newObject(groups.north, { name: 'gone' });
  await service.admin('PATCH', `objects/${kept._id}`, { name: 'still here' });
  const later = await newObject(groups.north, { name: 'later' });
  await service.admin('DELETE', `objects/${gone._id}`);
  await service.settled();
  const expected = [
    ['object-update', 'still here'],
    ['object-created', 'later'],
    ['object-removed', gone._id],
  ];
  const back = await openListener(service.url, people.north.token, { since }, 'everything');
  await until(async () => (await back.subscribe({})) && back.received().length >= expected.length);
  expect(brief(back.take())).toEqual(expected);
  back.close();
  const { body } = await people.north.call('GET', `events?since=${since}`);
  const events = body.events.map(({ event, data }: { event: string; data: object }) => ({
    name: event,
    payload: data,
  }));
  expect(brief(events)).toEqual(expected);
  const text = await stream(since, expected.length);
  expect([...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)).toEqual(expected.map(([name]) => name));
  expect(later.name).toBe('later');
});

/** The first events of the stream. */
async function stream(since: string, events: number): Promise<string> {
  const leaving = new AbortController();
  const headers = { Authorization: `Bearer ${people.north.token}`, Accept: 'text/event-stream' };
  const response = await fetch(`${service.url}/api/v1/events?since=${since}`, { headers, signal: leaving.signal });
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (text.split('\nevent: ').length + (text.startsWith('event: ') ? 0 : -1) >= events) break;
  }
  leaving.abort();
  return text;
}

test('applies a filter by event names to appearing objects', async () => {
  const some = await service.listen(people.north.token, 'everything');
  const others = await service.listen(people.north.token, 'everything');
  await some.subscribe({ events: ['object-created', 'object-removed'] });
  await others.subscribe({ events: ['object-packet'] });
  const { _id } = await newObject(groups.north);
  await service.admin('POST', `objects/${_id}/packets`, { n: 7 });
  await service.admin('PATCH', `objects/${_id}`, { name: 'x' });
  await service.admin('DELETE', `objects/${_id}`);
  await service.settled();
  expect(some.take().map(({ name }) => name)).toEqual(['object-created', 'object-removed']);
  expect(brief(others.take())).toEqual([['object-packet', 7]]);
});

describe('in the past', () => {
  /** Page by page: a database that is busy ends a page before it is full. */
  const namesOf = async (person: Person, first: string): Promise<[string, string][]> => {
    const names: [string, string][] = [];
    let path: string | undefined = first;
    while (path !== undefined) {
      const { status, body, headers } = await person.call('GET', path);
      if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
      for (const { event, data } of body) names.push([event, data.id]);
      path = /<\/api\/v1\/([^>]*)>/.exec(headers.link ?? '')?.[1];
    }
    return names;
  };

  test('lists appearing and disappearing objects page by page', async () => {
    const fromMs = Date.now();
    const gone = await story();
    const kept = await newObject(groups.south);
    await service.settled();
    const path = `events?from=${fromMs}&events=object-created,object-removed`;
    const events = await namesOf(people.south, path);
    expect(events).toEqual([
      ['object-removed', gone],
      ['object-created', kept._id],
    ]);
    expect(await namesOf(people.north, path)).toEqual([
      ['object-removed', gone],
      ['object-removed', gone],
    ]);
    expect(await namesOf(people.south, `${path}&limit=1`)).toEqual(events);
  });

  test('lists the events of one object', async () => {
    const { _id } = await newObject(groups.north);
    await service.admin('PATCH', `objects/${_id}`, { name: 'at once' });
    await service.settled();
    const events = await namesOf(people.north, `objects/${_id}/events`);
    expect(events.map(([event]) => event)).toEqual(['object-created', 'object-update']);
  });
});
