/** The fixture of the tests of rights: three branches of groups, and a caller of every kind. */
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, DEVICE_ROLE_ID, OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { createPerson, type Person } from '../support/callers.js';
import { ADMIN, type Call, type TestService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';

export const CALLERS = [
  'anonymous',
  'rootAdmin',
  'groupAdmin',
  'operator',
  'viewer',
  'device',
  'scoped',
  'foreignAdmin',
] as const;
export type CallerKind = (typeof CALLERS)[number];

/** Where an entity stands to the group `own`, of which all but `rootAdmin` and `foreignAdmin` are members. */
export const PLACES = ['own', 'sub', 'above', 'foreign', 'owned', 'shared', 'missing'] as const;
export type Place = (typeof PLACES)[number];

const SCOPES = ['GET /objects/*', 'DELETE /objects/*', 'POST /objects/*/commands/*'];

export interface RightsFixture {
  /** The chain of groups that ends with this one, by name: root, own, sub (of own), foreign, empty. */
  readonly branches: Readonly<Record<'root' | 'own' | 'sub' | 'foreign' | 'empty', string[]>>;
  readonly calls: Readonly<Record<CallerKind, Call>>;
  readonly ids: Readonly<Record<CallerKind, string>>;
  /** Logs in again: its token may be revoked. */
  readonly logIn: (caller: CallerKind) => Promise<Call>;
  readonly persons: Readonly<Record<'groupAdmin' | 'operator' | 'viewer' | 'device' | 'foreignAdmin', Person>>;
}

export async function createRightsFixture(service: TestService): Promise<RightsFixture> {
  const group = async (fields: object): Promise<string[]> =>
    (await service.admin('POST', 'groups', fields)).body.branch as string[];
  const last = (branch: string[]): string => branch.at(-1) as string;
  const own = await group({ name: 'own' });
  const foreign = await group({ name: 'foreign' });
  const empty = await group({ name: 'empty' });
  const branches = { root: own.slice(0, 1), own, foreign, empty, sub: await group({ name: 'sub', parent: last(own) }) };
  const person = (role: string, branch = own, more: object = {}) =>
    createPerson(service, { role, group: last(branch), ...more });
  const object = (await service.admin('POST', 'objects', { id: 'of-device', name: 'x', group: last(own) })).body._id;
  const persons = {
    groupAdmin: await person(ADMINISTRATOR_ROLE_ID),
    operator: await person(OPERATOR_ROLE_ID),
    viewer: await person(VIEWER_ROLE_ID),
    // The device of an object that the matrix does not contain.
    device: await person(DEVICE_ROLE_ID, own, { object }),
    foreignAdmin: await person(ADMINISTRATOR_ROLE_ID, foreign),
  };
  const scoped = () => persons.groupAdmin.call('POST', 'tokens', { name: 'scoped', scopes: SCOPES });
  const logIn = async (caller: CallerKind): Promise<Call> => {
    if (caller === 'anonymous') return callUnchecked(service.url, null);
    if (caller === 'scoped') return callUnchecked(service.url, (await scoped()).body.token);
    const { login, password } = caller === 'rootAdmin' ? ADMIN : persons[caller];
    return callUnchecked(service.url, await service.tokenOf(login, password));
  };
  const callsOfPersons = Object.fromEntries(
    Object.entries(persons).map(([name, { token }]) => [name, callUnchecked(service.url, token)]),
  );
  const idsOfPersons = Object.fromEntries(Object.entries(persons).map(([name, { id }]) => [name, id]));
  const root = (await service.admin('GET', 'auth')).body._id as string;
  return {
    branches,
    persons,
    logIn,
    calls: {
      anonymous: callUnchecked(service.url, null),
      rootAdmin: await logIn('rootAdmin'),
      scoped: await logIn('scoped'),
      ...callsOfPersons,
    } as RightsFixture['calls'],
    ids: {
      anonymous: 'f'.repeat(24),
      rootAdmin: root,
      scoped: persons.groupAdmin.id,
      ...idsOfPersons,
    } as RightsFixture['ids'],
  };
}

/** Entities put straight into the database, one in each place as this caller sees it: their `_id`s, also the missing one's. */
export async function placeAll(
  service: TestService,
  fixture: RightsFixture,
  { store, caller, fields }: { store: string; caller: CallerKind; fields: (at: Place) => object },
): Promise<Record<Place, string>> {
  const branch = {
    own: 'own',
    sub: 'sub',
    above: 'root',
    foreign: 'foreign',
    owned: 'empty',
    shared: 'empty',
  } as const;
  const ids = Object.fromEntries(PLACES.map((at) => [at, new ObjectId()])) as Record<Place, ObjectId>;
  const callerId = new ObjectId(fixture.ids[caller]);
  const documents = PLACES.filter((at) => at !== 'missing').map((at) => {
    const chain = fixture.branches[branch[at]].map((id) => new ObjectId(id));
    return {
      _id: ids[at],
      ...fields(at),
      owner: at === 'owned' ? callerId : new ObjectId(OTHER_USER),
      group: chain.at(-1),
      branch: chain,
      access: at === 'shared' ? [new ObjectId(OTHER_USER), callerId] : [new ObjectId(OTHER_USER)],
      time: Date.now(),
    };
  });
  await service.client.db().collection(store).insertMany(documents);
  return Object.fromEntries(PLACES.map((at) => [at, ids[at].toHexString()])) as Record<Place, string>;
}

/** An id without a user, in the `access` of every entity, so that each has a share to remove. */
export const OTHER_USER = 'a'.repeat(24);

/** Calls without a comparison with the OpenAPI document: the stored entities of these tests have only the fields that decide about rights. */
function callUnchecked(url: string, token: string | null): Call {
  return (method, path, body) =>
    sendHttp(url, {
      method,
      path: path.startsWith('/') ? path : `/api/v1/${path}`,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { text: JSON.stringify(body) }),
    });
}

/** The rule of visibility (docs/reference/permissions.md), written again: a group sees its branch; owners and users with a share see an entity anywhere. */
export function sees(caller: CallerKind, at: Place): boolean {
  if (at === 'missing' || caller === 'anonymous') return false;
  if (at === 'owned' || at === 'shared') return true;
  if (caller === 'rootAdmin') return true;
  if (caller === 'foreignAdmin') return at === 'foreign';
  return at === 'own' || at === 'sub';
}
