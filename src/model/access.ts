/**
 * Who may do what, in one place. `mayCall` decides a method on a path (403), `scopeOf` what a caller sees in the
 * database, `readersOf` who hears an event: the last two are the same rule, once as a filter and once as addresses.
 */

/** Who asks: a user, through a session or a token. */
export interface Caller {
  readonly userId: string;
  readonly login: string;
  readonly groupId: string;
  readonly roleId: string | null;
  /** What the user's role permits: `METHOD /path/pattern`. */
  readonly credentials: readonly string[];
  /** What the token permits beside that; null when the token (or the session) narrows nothing. */
  readonly scopes: readonly string[] | null;
  readonly session: { readonly id: string; readonly expiresAtMs: number } | null;
  readonly token: { readonly id: string; readonly expiresAtMs: number } | null;
  /** The object whose device the user is. */
  readonly object: OwnObject | null;
}

/** An object by its `_id`, and by the own id that its device may call it; null where that names nobody. */
export interface OwnObject {
  readonly objectId: string;
  readonly ownId: string | null;
}

declare const scopeBrand: unique symbol;

/** What a caller can see. Made by `scopeOf` alone, so that no query can be written without asking whose it is. */
export interface Scope {
  readonly userId: string;
  readonly groupId: string;
  /** What the own id of the caller's object means to the caller, whoever has it meanwhile. */
  readonly object: OwnObject | null;
  readonly [scopeBrand]: true;
}

/** The fields of an entity that decide who sees it. */
export interface Guarded {
  readonly owner: string;
  readonly branch: readonly string[];
  readonly access: readonly string[];
}

// Others write the path without the slash in front; a lone `*` is no path.
const CREDENTIAL = /^(\*|[A-Z]+) (\/\S*|[A-Za-z:]\S*)$/;

export function scopeOf(caller: Pick<Caller, 'userId' | 'groupId'> & Partial<Pick<Caller, 'object'>>): Scope {
  return { userId: caller.userId, groupId: caller.groupId, object: caller.object ?? null } as Scope;
}

/** The addresses at which a caller listens: events sent to any of them reach the caller. */
export function addressesOf(scope: Scope): string[] {
  return [`group:${scope.groupId}`, `user:${scope.userId}`];
}

/** The addresses an event of this entity goes to: every group of its branch, its owner, and those it is shared with. */
export function readersOf(entity: Guarded): string[] {
  return [
    ...entity.branch.map((id) => `group:${id}`),
    ...new Set([entity.owner, ...entity.access].map((id) => `user:${id}`)),
  ];
}

/** Whether text is a credential: a method or `*`, one space, a path, with or without a slash in front. */
export function isCredential(text: string): boolean {
  return text.length <= 256 && CREDENTIAL.test(text);
}

/** A request path (without the prefix api/v1) as decoded segments; throws URIError where the encoding is broken. */
export function toSegments(path: string): string[] {
  const segments = path.split('/').filter(Boolean);
  return path.includes('%') ? segments.map(decodeURIComponent) : segments;
}

/**
 * Whether the caller's role, and where there is one the token's scopes, permit the method on the path.
 * HEAD is asked as GET. In a pattern `*` stands for one segment, as the last one for the path so far and all below it;
 * `:name` stands for one segment anywhere.
 */
export function mayCall(
  caller: Pick<Caller, 'credentials' | 'scopes'>,
  method: string,
  segments: readonly string[],
): boolean {
  return permits(caller, method === 'HEAD' ? 'GET' : method, segments);
}

/** The same; where null stands in the path, for whatever could stand there. */
function permits(
  { credentials, scopes }: Pick<Caller, 'credentials' | 'scopes'>,
  method: string,
  segments: readonly (string | null)[],
): boolean {
  const fits = (credential: string) => matches(credential, method, segments);
  return credentials.some(fits) && (scopes === null || scopes.some(fits));
}

/** A `:object` that `forObject` has left stands for the object of a user who has none: for no text that can be asked for. */
const NOBODYS = Symbol(':object');
type Part = string | null | typeof NOBODYS;

interface Pattern {
  readonly method: string;
  /** Decoded segments; null stands for any one. */
  readonly parts: readonly Part[];
  /** Whether it ended with `*`: the path so far, and everything below it. */
  readonly open: boolean;
}

function readPattern(credential: string): Pattern | null {
  const [, method, path] = CREDENTIAL.exec(credential) ?? [];
  if (method === undefined || path === undefined) return null;
  const segments = path
    .replace(/^\/?api\/v1(?=\/|$)/, '')
    .split('/')
    .filter(Boolean);
  const open = segments.at(-1) === '*';
  const parts = (open ? segments.slice(0, -1) : segments).map(readPart);
  return { method, parts, open };
}

function readPart(part: string): Part {
  if (part === ':object') return NOBODYS;
  if (part === '*' || part.startsWith(':')) return null;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function matches(credential: string, method: string, segments: readonly (string | null)[]): boolean {
  const pattern = readPattern(credential);
  if (pattern === null || (pattern.method !== '*' && pattern.method !== method)) return false;
  return reaches(pattern, segments);
}

function reaches({ parts, open }: Pattern, segments: readonly Part[]): boolean {
  if (open ? segments.length < parts.length : segments.length !== parts.length) return false;
  return parts.every((part, at) => part === null || part === segments[at]);
}

/** Whether everything that `granted` permits is permitted to the caller already: nobody gives rights they lack. */
export function mayGrant(caller: Pick<Caller, 'credentials' | 'scopes'>, granted: readonly string[]): boolean {
  const coveredBy = (held: readonly string[], wanted: string) => held.some((credential) => covers(credential, wanted));
  return granted.every(
    (wanted) => coveredBy(caller.credentials, wanted) && (caller.scopes === null || coveredBy(caller.scopes, wanted)),
  );
}

function covers(held: string, wanted: string): boolean {
  const [mine, theirs] = [readPattern(held), readPattern(wanted)];
  if (mine === null || theirs === null || (mine.method !== '*' && mine.method !== theirs.method)) return false;
  // What is open reaches below its own length, so only what is open can hold it.
  return (mine.open || !theirs.open) && reaches(mine, theirs.parts);
}

/**
 * Credentials of a user who is the device of one object: `:object` stands for that object, by its `_id`, and by its own id
 * where that names it. What a caller calls so is that object, and no other (`Scope.object`).
 */
export function forObject(credentials: readonly string[], object: OwnObject | null): string[] {
  const ids = object === null ? [] : [object.objectId, object.ownId].filter((id) => id !== null);
  return credentials.flatMap((credential) =>
    /\/:object(?=\/|$)/.test(credential)
      ? ids.map((id) => credential.replace(/\/:object(?=\/|$)/g, () => `/${encoded(id)}`))
      : [credential],
  );
}

// What means something in a pattern is only itself in an id.
const encoded = (id: string): string => encodeURIComponent(id).replace(/\*/g, '%2A');

/** Which objects' events the credentials let a caller hear: every one, or only those they name. */
export function audibleObjects(caller: Pick<Caller, 'credentials' | 'scopes'>): 'all' | string[] {
  if (permits(caller, 'GET', ['objects', null])) return 'all';
  const named = [...caller.credentials, ...(caller.scopes ?? [])].flatMap((credential) => {
    const [store, id] = readPattern(credential)?.parts ?? [];
    return store === 'objects' && typeof id === 'string' ? [id] : [];
  });
  return [...new Set(named)].filter((id) => mayCall(caller, 'GET', ['objects', id]));
}
