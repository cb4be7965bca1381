/**
 * All permissions. `mayCall` permits a method on a path (403), `scopeOf` determines the visible entities, `audienceOf` the
 * recipients of an event. The last two are the same rule, as a filter and as addresses.
 */
import { ID, isValidOwnId, toOwnId } from './own-id.js';

/** The user of a request, authenticated by a session or a token. */
export interface Caller {
  readonly userId: string;
  readonly login: string;
  readonly groupId: string;
  /** The group below the root that the user belongs to; null or absent for a user of the root group. */
  readonly tenantId?: string | null;
  readonly roleId: string | null;
  /** The permissions of the user's role: `METHOD /path/pattern`. */
  readonly credentials: readonly string[];
  /** The scopes of the token, which restrict the role; null means no restriction. */
  readonly scopes: readonly string[] | null;
  /** The objects that the scopes name. */
  readonly scopeObjects?: readonly ScopeObject[];
  readonly session: { readonly id: string; readonly expiresAtMs: number } | null;
  readonly token: { readonly id: string; readonly expiresAtMs: number } | null;
  /** The object, if the user is its device. */
  readonly object: OwnObject | null;
  /** `_at` of the user and of its role when the request was authenticated; null before their first change. */
  readonly changedMs: { readonly user: number | null; readonly role: number | null };
  /** When they were created. */
  readonly createdMs: { readonly user: number; readonly role: number };
}

/** An object by `_id` and by the own id that its device may use; null for an invalid own id. */
export interface OwnObject {
  readonly objectId: string;
  readonly ownId: string | null;
}

/** An object under an own id that means it, whichever object has the id by now. */
export interface NamedObject {
  readonly objectId: string;
  readonly ownId: string;
}

/** An object that the scopes of a token name: they permit the same by every name of it. */
export interface ScopeObject {
  readonly objectId: string;
  /** The own id that it has now; null if that can name no object, or if the object is gone. */
  readonly ownId: string | null;
  /** The own ids by which the scopes name it since the creation of the token, even if other objects have them by now. */
  readonly boundIds: readonly string[];
}

declare const scopeBrand: unique symbol;

/** What a caller can see. Only `scopeOf` creates it, so that no query can omit the caller. */
export interface Scope {
  readonly userId: string;
  readonly groupId: string;
  /** The objects that their own ids name for this caller, even if other objects have those ids by now. */
  readonly objects: readonly OwnObject[];
  /** The objects that the credentials name, where they permit to read no others; null where they permit all. */
  readonly onlyObjects: readonly string[] | null;
  readonly [scopeBrand]: true;
}

/** The fields of an entity that decide who sees it. */
export interface AccessFields {
  readonly owner: string;
  readonly branch: readonly string[];
  readonly access: readonly string[];
}

// Other platforms omit the leading slash; a lone `*` is not a path.
const CREDENTIAL = /^(\*|[A-Z]+) (\/\S*|[A-Za-z:]\S*)$/;

/** What decides which requests a caller may make. `scopeObjects` belong to `scopes`. */
export type PermissionHolder = Pick<Caller, 'credentials' | 'scopes' | 'scopeObjects'>;

type ScopeOwner = Pick<Caller, 'userId' | 'groupId'> &
  Partial<Pick<Caller, 'object' | 'scopeObjects' | 'credentials' | 'scopes'>>;

export function scopeOf(owner: ScopeOwner): Scope {
  const { userId, groupId, object = null, scopeObjects = [], credentials, scopes = null } = owner;
  const bound = scopeObjects.flatMap(({ objectId, boundIds }) => boundIds.map((ownId) => ({ objectId, ownId })));
  // What a scope is bound to comes before who has the name now.
  const objects = [...(object === null ? [] : [object]), ...bound, ...scopeObjects];
  const onlyObjects = credentials === undefined ? null : onlyObjectsOf({ credentials, scopes, scopeObjects });
  const scope: Omit<Scope, typeof scopeBrand> = { userId, groupId, objects, onlyObjects };
  return scope as Scope;
}

/** By the lists of a caller, which stay the same as long as its account is cached. */
const onlyObjectsKnown = new WeakMap<readonly string[], WeakMap<readonly string[], Scope['onlyObjects']>>();
const NO_SCOPES: readonly string[] = [];

function onlyObjectsOf(caller: PermissionHolder): Scope['onlyObjects'] {
  const { credentials, scopes } = caller;
  const byScopes = onlyObjectsKnown.get(credentials) ?? new WeakMap<readonly string[], Scope['onlyObjects']>();
  onlyObjectsKnown.set(credentials, byScopes);
  const known = byScopes.get(scopes ?? NO_SCOPES);
  if (known !== undefined) return known;
  const permitted = permittedObjects(caller);
  // A list of objects shows all of them.
  const only = permitted === 'all' || mayCall(caller, 'GET', ['objects']) ? null : permitted;
  byScopes.set(scopes ?? NO_SCOPES, only);
  return only;
}

/** The `_id` of the object that the own id names for this caller; null for whichever object has the id. */
export const objectNamed = ({ objects }: Pick<Scope, 'objects'>, ownId: string): string | null =>
  objects.find((one) => one.ownId === ownId)?.objectId ?? null;

export const addressOfGroup = (groupId: string): string => `group:${groupId}`;

/** The addresses of a caller: events to any of them reach the caller. */
export function addressesOf(scope: Scope): string[] {
  return [addressOfGroup(scope.groupId), `user:${scope.userId}`];
}

/** The addresses of an entity's events: the groups of its branch, its owner, and the users it is shared with. */
export function audienceOf(entity: AccessFields): string[] {
  return [...entity.branch.map(addressOfGroup), ...new Set([entity.owner, ...entity.access].map((id) => `user:${id}`))];
}

/** The fields that decide who sees an entity. */
export const ACCESS_FIELDS: readonly (keyof AccessFields)[] = ['owner', 'branch', 'access'];

/** Whether text is a credential: a method or `*`, one space, and a path with or without a leading slash. */
export function isCredential(text: string): boolean {
  return text.length <= 256 && CREDENTIAL.test(text);
}

/** Splits a request path without the prefix api/v1 into decoded segments in NFC; throws URIError for invalid encoding. */
export function toSegments(path: string): string[] {
  const segments = path.split('/').filter(Boolean);
  return path.includes('%') ? segments.map((segment) => decodeURIComponent(segment).normalize('NFC')) : segments;
}

/**
 * Whether the caller's role, and the scopes of a token, permit the method on the path. HEAD counts as GET. In a pattern, `*` and
 * `:name` match one segment; a final `*` matches the path so far and everything below it.
 */
export function mayCall(caller: PermissionHolder, method: string, segments: readonly string[]): boolean {
  return permits(caller, method === 'HEAD' ? 'GET' : method, segments);
}

/** Permitted to every role: the caller's own account. A token still needs a scope for it. */
export const OWN_ACCOUNT = '* /account/*';

/** Whether the caller may call the method below an object, by one of the two names that the object has now. */
export function mayCallObject(
  caller: PermissionHolder & ScopeOwner,
  { objectId, ownId }: OwnObject,
  method: string,
  below: readonly string[],
): boolean {
  // For this caller, the own id may mean another object that had it before.
  const isOwn = ownId !== null && isValidOwnId(ownId) && (objectNamed(scopeOf(caller), ownId) ?? objectId) === objectId;
  const keys = isOwn ? [objectId, ownId] : [objectId];
  return keys.some((key) => mayCall(caller, method, ['objects', key, ...below]));
}

type Segments = readonly (string | null)[];

/** Like `mayCall`; null in the path means any segment. */
function permits(
  { credentials, scopes, scopeObjects = [] }: PermissionHolder,
  method: string,
  path: Segments,
): boolean {
  const segments = path.map(toKey);
  const named = scopeObjects.length === 0 ? null : findNamed(scopeObjects, segments);
  const fits = (held: readonly string[], keys: readonly string[]): boolean =>
    named === null
      ? held.some((credential) => matches(credential, method, segments))
      : keys.some((key) =>
          held.some((credential) => matches(credential, method, ['objects', key, ...segments.slice(2)])),
        );
  const names = named === null ? [] : [named.objectId, named.ownId].filter((name) => name !== null);
  const isPermitted = segments[0] === 'account' || fits(credentials, names);
  return isPermitted && (scopes === null || fits(scopes, named === null ? [] : namesInScopes(named, scopeObjects)));
}

/** The object of a path, if scopes name it. */
function findNamed(scopeObjects: readonly ScopeObject[], [store, key]: Segments): ScopeObject | null {
  if (store !== 'objects' || typeof key !== 'string') return null;
  const found =
    scopeObjects.find(({ objectId, boundIds }) => objectId === key || boundIds.includes(key)) ??
    scopeObjects.find(({ ownId }) => ownId === key);
  return found ?? null;
}

/** The names by which scopes mean the object: its own id of now may be one that they bind to another object. */
function namesInScopes(named: ScopeObject, scopeObjects: readonly ScopeObject[]): string[] {
  const { objectId, ownId, boundIds } = named;
  const isOthers = scopeObjects.some((one) => one !== named && ownId !== null && one.boundIds.includes(ownId));
  return [objectId, ...boundIds, ...(ownId === null || isOthers ? [] : [ownId])];
}

/** A segment of a path as it is compared: names in the form in which they are stored. */
function toKey<T extends Part>(segment: T, index: number, [store]: readonly Part[]): T | string {
  if (typeof segment !== 'string') return segment;
  if (ID.test(segment)) return segment.toLowerCase();
  return index === 1 && typeof store === 'string' && NAMED_BY_OWN_ID.has(store) ? toOwnId(segment) : segment;
}

const NAMED_BY_OWN_ID: ReadonlySet<string> = new Set(['objects', 'sources']);

/** The first credential that permits the method on the path; null if none does. `account` is everyone's. */
export function findPermitting(
  credentials: readonly string[],
  method: string,
  segments: readonly string[],
): string | null {
  const wanted = method === 'HEAD' ? 'GET' : method;
  const keys = segments.map(toKey);
  const found = credentials.find((credential) => matches(credential, wanted, keys));
  return found ?? (segments[0] === 'account' ? OWN_ACCOUNT : null);
}

/** A `:object` that `forObject` did not replace belongs to a user without an object: it matches no segment. */
const NO_OBJECT = Symbol(':object');
type Part = string | null | typeof NO_OBJECT;

interface Pattern {
  readonly method: string;
  /** Decoded segments; null matches any segment. */
  readonly parts: readonly Part[];
  /** Whether it ended with `*`: it matches the path so far and everything below it. */
  readonly open: boolean;
}

export function parsePattern(credential: string): Pattern | null {
  const [, method, path] = CREDENTIAL.exec(credential) ?? [];
  if (method === undefined || path === undefined) return null;
  const all = path.split('/').filter(Boolean);
  const segments = all[0] === 'api' && all[1] === 'v1' ? all.slice(2) : all;
  const open = segments.at(-1) === '*';
  // As in the paths of requests, the case of routes does not matter.
  const parts = (open ? segments.slice(0, -1) : segments)
    .map(parsePart)
    .map((part, index) => (index % 2 === 0 && typeof part === 'string' ? part.toLowerCase() : part));
  return { method, parts: parts.map(toKey), open };
}

function parsePart(part: string): Part {
  if (part === ':object') return NO_OBJECT;
  if (part === '*' || part.startsWith(':')) return null;
  try {
    return decodeURIComponent(part).normalize('NFC');
  } catch {
    return part;
  }
}

function matches(credential: string, method: string, segments: readonly (string | null)[]): boolean {
  const pattern = parsePattern(credential);
  if (pattern === null || (pattern.method !== '*' && pattern.method !== method)) return false;
  return reaches(pattern, segments);
}

export function reaches({ parts, open }: Pattern, segments: readonly Part[]): boolean {
  if (open ? segments.length < parts.length : segments.length !== parts.length) return false;
  return parts.every((part, index) => part === null || part === segments[index]);
}

/**
 * The credentials of a device's user: replaces `:object` by the `_id` of its object and by its valid own id. For this user, that
 * own id always names that object (`Scope.object`).
 */
export function forObject(credentials: readonly string[], object: OwnObject | null): string[] {
  const ids = object === null ? [] : [object.objectId, object.ownId].filter((id) => id !== null);
  return credentials.flatMap((credential) =>
    /\/:object(?=\/|$)/.test(credential)
      ? ids.map((id) => credential.replace(/\/:object(?=\/|$)/g, () => `/${encoded(id)}`))
      : [credential],
  );
}

/** The identifiers by which credentials name single objects. */
export const objectKeysIn = (credentials: readonly string[]): string[] =>
  credentials.flatMap((credential) => {
    const [store, key] = parsePattern(credential)?.parts ?? [];
    return store === 'objects' && typeof key === 'string' ? [key] : [];
  });

const OF_OBJECT = /^(\S+ \/*(?:api\/+v1\/+)?objects\/+)[^/]+/i;

/** Scopes that name the objects by `_id` in place of the own ids that mean them for this caller. */
export const withObjectIds = (scopes: readonly string[], objects: Pick<Scope, 'objects'>): string[] =>
  scopes.map((scope) => {
    const [key] = objectKeysIn([scope]);
    const objectId = key === undefined || ID.test(key) ? null : objectNamed(objects, key);
    return objectId === null ? scope : scope.replace(OF_OBJECT, (_, before: string) => `${before}${objectId}`);
  });

// Escapes characters with a meaning in patterns.
const encoded = (id: string): string => encodeURIComponent(id).replace(/\*/g, '%2A');

/** The objects whose events the credentials permit: all, or only the named ones, by `_id` or own id. */
export function permittedObjects(caller: PermissionHolder): 'all' | string[] {
  if (permits(caller, 'GET', ['objects', null])) return 'all';
  const { credentials, scopes, scopeObjects = [] } = caller;
  const keys = objectKeysIn([...credentials, ...(scopes ?? [])]).filter((key) =>
    mayCall(caller, 'GET', ['objects', key]),
  );
  return [...new Set(keys.map((key) => findNamed(scopeObjects, ['objects', key])?.objectId ?? key))];
}
