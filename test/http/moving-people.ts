/** Two organisations with people, and objects that move between their groups. */
import { beforeAll } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID, OPERATOR_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import type { Call, TestService } from '../support/fixture.js';

export function useMovingPeople(service: TestService) {
  /** Two organisations below the root; `north` has a team. */
  const groups = {} as Record<'north' | 'team' | 'south', string>;
  const people = {} as Record<'northAdmin' | 'teamAdmin' | 'southAdmin' | 'operator', Person>;

  const make = async (path: string, fields: object, call: Call = service.admin) =>
    entityOf(await call('POST', path, fields));
  let made = 0;
  const makeObject = async (group: string, fields: object = {}, call: Call = service.admin): Promise<string> => {
    made++;
    return (await make('objects', { id: `moved-${made}`, name: `Van ${made}`, group, ...fields }, call))._id;
  };
  const move = (id: string, group: string, call: Call = service.admin) => call('POST', `objects/${id}/move`, { group });
  const admin = (group: string) => createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
  const withRole = async (credentials: string[], group: string): Promise<Call> => {
    const role = (await make('roles', { name: `role ${made++}`, credentials }))._id;
    return (await createPerson(service, { role, group })).call;
  };

  beforeAll(async () => {
    groups.north = (await make('groups', { name: 'north' }))._id;
    groups.team = (await make('groups', { name: 'team', parent: groups.north }))._id;
    groups.south = (await make('groups', { name: 'south' }))._id;
    people.northAdmin = await admin(groups.north);
    people.teamAdmin = await admin(groups.team);
    people.southAdmin = await admin(groups.south);
    people.operator = await createPerson(service, { role: OPERATOR_ROLE_ID, group: groups.north });
  });
  return { groups, people, make, makeObject, move, admin, withRole };
}
