/** Saved views of the console: an address by a name, with the rights of every store. */
import { beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { useService } from '../support/fixture.js';

const service = useService();
const VIEW = { name: 'Offline trucks', query: 'show=offline&label=truck&view=table' };
let north: string;
let south: string;

beforeAll(async () => {
  north = entityOf(await service.admin('POST', 'groups', { name: 'North' }))._id as string;
  south = entityOf(await service.admin('POST', 'groups', { name: 'South' }))._id as string;
});

test('keeps a view of an operator, for its owner until it is shared', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const created = await person.call('POST', 'views', VIEW);
  expect(created).toMatchObject({ status: 200, body: { ...VIEW, shared: false, group: north } });
  const path = `views/${created.body._id}`;
  expect(await person.call('PATCH', path, { shared: true })).toMatchObject({ status: 200, body: { shared: true } });
  expect((await person.call('DELETE', path)).status).toBe(200);
  expect((await person.call('GET', path)).status).toBe(404);
});

test('shows a view to its group and those above, and to no other group', async () => {
  const [owner, colleague, stranger] = await Promise.all([
    createPerson(service, { role: OPERATOR_ROLE_ID, group: north }),
    createPerson(service, { role: VIEWER_ROLE_ID, group: north }),
    createPerson(service, { role: VIEWER_ROLE_ID, group: south }),
  ]);
  const { body } = await owner.call('POST', 'views', { ...VIEW, shared: true });
  const path = `views/${body._id}`;
  expect((await colleague.call('GET', path)).status).toBe(200);
  expect((await service.admin('GET', path)).status).toBe(200);
  expect((await stranger.call('GET', path)).status).toBe(404);
  expect((await colleague.call('PATCH', path, { name: 'Mine' })).status).toBe(403);
  expect((await owner.call('POST', 'views', { ...VIEW, group: south })).status).not.toBe(200);
});

test.each([
  [{ name: 'No query' }, 'query: required'],
  [{ query: '' }, 'name: required'],
  [{ ...VIEW, query: '?show=offline' }, 'query: expected the query of an address'],
  [{ ...VIEW, query: 'a b' }, 'query: expected the query of an address'],
  [{ ...VIEW, query: 'x'.repeat(LIMITS.viewCharacters + 1) }, 'query: '],
  [{ ...VIEW, shared: 'yes' }, 'shared: '],
])('refuses %j', async (fields, message) => {
  const { status, body } = await service.admin('POST', 'views', fields);
  expect(status).toBe(400);
  expect(body.helper.message).toContain(message);
});

test('keeps no more views of one user than the limit', async () => {
  const person = await createPerson(service, { role: OPERATOR_ROLE_ID, group: north });
  const first = await person.call('POST', 'views', VIEW);
  const { _id, ...fields } = (await service.client
    .db()
    .collection('views')
    .findOne({ _id: new ObjectId(first.body._id as string) })) as Record<string, unknown>;
  const others = Array.from({ length: LIMITS.viewsPerUser - 1 }, () => ({ ...fields, _id: new ObjectId() }));
  await service.client.db().collection('views').insertMany(others);
  const refused = await person.call('POST', 'views', VIEW);
  expect([refused.status, refused.body.helper.message]).toEqual([400, `you have ${LIMITS.viewsPerUser} views already`]);
  const path = `views/${first.body._id}`;
  expect((await person.call('DELETE', path)).status).toBe(200);
  expect((await person.call('POST', 'views', VIEW)).status).toBe(200);
});
