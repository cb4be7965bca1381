/** Who may move objects to other groups: by the groups on both sides, and by the role. */
import { describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { useMovingPeople } from './moving-people.js';

const service = useService();
const { groups, people, makeObject, move, withRole } = useMovingPeople(service);

describe('who may move', () => {
  const shared = async (): Promise<string> => {
    const id = await makeObject(groups.south);
    await service.admin('POST', `objects/${id}/access`, { user: people.northAdmin.id });
    return id;
  };
  const owned = async (): Promise<string> => {
    const leaving = await makeObject(groups.north, {}, people.northAdmin.call);
    await move(leaving, groups.south);
    return leaving;
  };
  test.each([
    ['an administrator above both groups', () => service.admin, () => makeObject(groups.north), 'south', 200],
    ['an administrator, down', () => people.northAdmin.call, () => makeObject(groups.north), 'team', 200],
    ['an administrator, up', () => people.northAdmin.call, () => makeObject(groups.team), 'north', 200],
    ['into a group above one’s own', () => people.teamAdmin.call, () => makeObject(groups.team), 'north', 400],
    ['into a foreign group', () => people.northAdmin.call, () => makeObject(groups.north), 'south', 400],
    ['out of a group above', () => people.teamAdmin.call, () => makeObject(groups.north), 'team', 404],
    ['out of a foreign group', () => people.northAdmin.call, () => makeObject(groups.south), 'north', 404],
    ['what is shared', () => people.northAdmin.call, shared, 'north', 403],
    ['what one has created, of a foreign group', () => people.northAdmin.call, owned, 'north', 403],
    ['an operator', () => people.operator.call, () => makeObject(groups.north), 'team', 403],
    ['nobody', () => service.as(null), () => makeObject(groups.north), 'team', 401],
  ] as const)('permits or refuses %s', async (_, call, at, to, status) => {
    if (status === 401) return void expect((await service.as('x')('POST', 'objects/x/move', {})).status).toBe(401);
    const id = await at();
    const before = (await service.admin('GET', `objects/${id}`)).body;
    const answer = await move(id, groups[to], call());
    expect([answer.status, answer.body.helper]).toEqual([
      status,
      status === 400
        ? { message: 'group: not a group of yours' }
        : status === 403 && to === 'north'
          ? { message: 'it belongs to a group that is not yours' }
          : undefined,
    ]);
    const after = (await service.admin('GET', `objects/${id}`)).body;
    if (status === 200) expect(after.group).toBe(groups[to]);
    else expect(after).toEqual(before);
  });

  test.each([
    [['POST /objects/*/move', 'PATCH /objects/*', 'POST /objects'], 200, undefined],
    [['POST /objects/*', 'PATCH /objects/*'], 200, undefined],
    [
      ['POST /objects/*/move', 'PATCH /objects/*'],
      403,
      'a move needs the right to create in objects, too: POST /objects',
    ],
    [['POST /objects/*'], 403, 'a move needs the right to change the entity, too: PATCH /objects/<id>'],
    [['PATCH /objects/*', 'POST /objects'], 403, undefined],
  ])('decides by the credentials %j: %i', async (credentials, status, message) => {
    const id = await makeObject(groups.north);
    const answer = await move(id, groups.team, await withRole(credentials, groups.north));
    expect([answer.status, answer.body.helper?.message]).toEqual([status, message]);
  });

  test.each([
    [{}, 'group: expected the _id of a group'],
    [{ group: null }, 'group: expected the _id of a group'],
    [{ group: 'mine' }, 'group: expected the _id of a group'],
    [{ group: ['x'] }, 'group: expected the _id of a group'],
    [{ group: 'f'.repeat(24) }, 'group: not a group of yours'],
  ])('refuses the group in %j', async (body, message) => {
    const id = await makeObject(groups.north);
    const answer = await service.admin('POST', `objects/${id}/move`, body);
    expect([answer.status, answer.body.helper]).toEqual([400, { message }]);
  });
});
