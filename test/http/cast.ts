/** Who plays in the tests of rights: three branches of groups, and a caller of every kind. */
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, DEVICE_ROLE_ID, OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/model/builtin.js';
import { createPerson, type Person } from '../support/callers.js';
import { ADMIN, type Call, type TestService } from '../support/fixture.js';

export const PLAYERS = [
  'nobody',
  'rootAdmin',
  'groupAdmin',
  'operator',
  'viewer',
  'device',
  'scoped',
  'foreignAdmin',
] as const;
export type Player = (typeof PLAYERS)[number];

/** Where an entity stands to the group `own`, of which all but `rootAdmin` and `foreignAdmin` are members. */
export const PLACES = ['own', 'sub', 'above', 'foreign', 'owned', 'shared', 'missing'] as const;
export type Place = (typeof PLACES)[number];

export const SCOPES = ['GET /objects/*', 'DELETE /objects/*', 'POST /objects/*/commands/*'];

export interface Cast {
  /** The chain of groups that ends with this one, by name: root, own, sub (of own), foreign, empty. */
  readonly branches: Readonly<Record<'root' | 'own' | 'sub' | 'foreign' | 'empty', string[]>>;
  readonly calls: Readonly<Record<Player, Call>>;
  readonly ids: Readonly<Record<Player, string>>;
  /** With a token that may be given back. */
  readonly enter: (player: Player) => Promise<Call>;
  readonly persons: Readonly<Record<'groupAdmin' | 'operator' | 'viewer' | 'device' | 'foreignAdmin', Person>>;
}

export async function gather(service: TestService): Promise<Cast> {
  const group = async (fields: object): Promise<string[]> =>
    (await service.admin('POST', 'groups', fields)).body.branch as string[];
  const last = (branch: string[]): string => branch.at(-1) as string;
  const [own, foreign, empty] = [
    await group({ name: 'own' }),
    await group({ name: 'foreign' }),
    await group({ name: 'empty' }),
  ];
  const branches = { root: own.slice(0, 1), own, foreign, empty, sub: await group({ name: 'sub', parent: last(own) }) };
  const person = (role: string, branch = own, more: object = {}) =>
    createPerson(service, { role, group: last(branch), ...more });
  const object = (await service.admin('POST', 'objects', { id: 'of-device', name: 'x', group: last(own) })).body._id;
  const persons = {
    groupAdmin: await person(ADMINISTRATOR_ROLE_ID),
    operator: await person(OPERATOR_ROLE_ID),
    viewer: await person(VIEWER_ROLE_ID),
    // Of an object that is none of those the matrix asks for.
    device: await person(DEVICE_ROLE_ID, own, { object }),
    foreignAdmin: await person(ADMINISTRATOR_ROLE_ID, foreign),
  };
  const scoped = () => persons.groupAdmin.call('POST', 'tokens', { name: 'scoped', scopes: SCOPES });
  const enter = async (player: Player): Promise<Call> => {
    if (player === 'nobody') return fast(null);
    if (player === 'scoped') return fast((await scoped()).body.token);
    const { login, password } = player === 'rootAdmin' ? ADMIN : persons[player];
    return fast(await service.tokenOf(login, password));
  };
  const fast = (token: string | null): Call => callFast(service.url, token);
  const callsOfPersons = Object.fromEntries(Object.entries(persons).map(([name, { token }]) => [name, fast(token)]));
  const idsOfPersons = Object.fromEntries(Object.entries(persons).map(([name, { id }]) => [name, id]));
  const root = (await service.admin('GET', 'auth')).body._id as string;
  return {
    branches,
    persons,
    enter,
    calls: {
      nobody: fast(null),
      rootAdmin: await enter('rootAdmin'),
      scoped: await enter('scoped'),
      ...callsOfPersons,
    } as Cast['calls'],
    ids: { nobody: 'f'.repeat(24), rootAdmin: root, scoped: persons.groupAdmin.id, ...idsOfPersons } as Cast['ids'],
  };
}

/** Entities put straight into the database, one in each place as this player sees it: their `_id`s, also the missing one's. */
export async function placeAll(
  service: TestService,
  cast: Cast,
  { store, player, fields }: { store: string; player: Player; fields: (at: Place) => object },
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
  const seer = new ObjectId(cast.ids[player]);
  const documents = PLACES.filter((at) => at !== 'missing').map((at) => {
    const chain = cast.branches[branch[at]].map((id) => new ObjectId(id));
    return {
      _id: ids[at],
      ...fields(at),
      owner: at === 'owned' ? seer : new ObjectId(STRANGER),
      group: chain.at(-1),
      branch: chain,
      access: at === 'shared' ? [new ObjectId(STRANGER), seer] : [new ObjectId(STRANGER)],
      time: Date.now(),
    };
  });
  await service.client.db().collection(store).insertMany(documents);
  return Object.fromEntries(PLACES.map((at) => [at, ids[at].toHexString()])) as Record<Place, string>;
}

/** A user of nobody's: in the `access` of everything, so that there is somebody to take from it. */
export const STRANGER = 'a'.repeat(24);

/** Calls over connections that are kept: thousands of cells take seconds. */
function callFast(url: string, token: string | null): Call {
  return async (method, path, body) => {
    const response = await fetch(new URL(path.startsWith('/') ? path : `/api/v1/${path}`, url), {
      method,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const headers = Object.fromEntries(response.headers);
    const isJson = text !== '' && headers['content-type']?.startsWith('application/json');
    return { status: response.status, text, headers, body: isJson ? JSON.parse(text) : {} };
  };
}

/** Who sees what (docs/reference/permissions.md), written anew: a group sees its branch; an owner and those it is shared with see it anywhere. */
export function sees(player: Player, at: Place): boolean {
  if (at === 'missing' || player === 'nobody') return false;
  if (at === 'owned' || at === 'shared') return true;
  if (player === 'rootAdmin') return true;
  if (player === 'foreignAdmin') return at === 'foreign';
  return at === 'own' || at === 'sub';
}
