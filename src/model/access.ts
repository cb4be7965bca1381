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
}

declare const scopeBrand: unique symbol;

/** What a caller can see. Made by `scopeOf` alone, so that no query can be written without asking whose it is. */
export interface Scope {
  readonly userId: string;
  readonly groupId: string;
  readonly [scopeBrand]: true;
}

/** The fields of an entity that decide who sees it. */
export interface Guarded {
  readonly owner: string;
  readonly branch: readonly string[];
  readonly access: readonly string[];
}

const CREDENTIAL = /^(\*|[A-Z]+) (\/\S*)$/;

export function scopeOf(caller: Pick<Caller, 'userId' | 'groupId'>): Scope {
  return { userId: caller.userId, groupId: caller.groupId } as Scope;
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

/** Whether text is a credential: a method or `*`, one space, a path that begins with `/`. */
export function isCredential(text: string): boolean {
  return text.length <= 256 && CREDENTIAL.test(text);
}

/** A request path (without the prefix api/v1) as decoded segments; throws URIError where the encoding is broken. */
export function toSegments(path: string): string[] {
  return path.split('/').filter(Boolean).map(decodeURIComponent);
}

/**
 * Whether the caller's role, and where there is one the token's scopes, permit the method on the path.
 * HEAD is asked as GET.
 */
export function mayCall(
  caller: Pick<Caller, 'credentials' | 'scopes'>,
  method: string,
  segments: readonly string[],
): boolean {
  const asked = method === 'HEAD' ? 'GET' : method;
  const permits = (credential: string) => matches(credential, asked, segments);
  return caller.credentials.some(permits) && (caller.scopes === null || caller.scopes.some(permits));
}

// `*` stands for one segment; as the last segment for the path so far and everything below it.
function matches(credential: string, method: string, segments: readonly string[]): boolean {
  const [, allowed, pattern] = CREDENTIAL.exec(credential) ?? [];
  if (pattern === undefined || (allowed !== '*' && allowed !== method)) return false;
  const parts = patternParts(pattern);
  const open = parts.at(-1) === '*';
  const fixed = open ? parts.slice(0, -1) : parts;
  if (open ? segments.length < fixed.length : segments.length !== fixed.length) return false;
  return fixed.every((part, at) => part === '*' || part === segments[at]);
}

function patternParts(pattern: string): string[] {
  return pattern
    .replace(/^\/api\/v1(?=\/|$)/, '')
    .split('/')
    .filter(Boolean);
}

/** Whether everything that `granted` permits is permitted to the caller already: nobody gives rights they lack. */
export function mayGrant(caller: Pick<Caller, 'credentials' | 'scopes'>, granted: readonly string[]): boolean {
  const coveredBy = (held: readonly string[], wanted: string) => held.some((credential) => covers(credential, wanted));
  return granted.every(
    (wanted) => coveredBy(caller.credentials, wanted) && (caller.scopes === null || coveredBy(caller.scopes, wanted)),
  );
}

function covers(held: string, wanted: string): boolean {
  const [, heldMethod, heldPattern] = CREDENTIAL.exec(held) ?? [];
  const [, wantedMethod, wantedPattern] = CREDENTIAL.exec(wanted) ?? [];
  if (heldPattern === undefined || wantedPattern === undefined) return false;
  if (heldMethod !== '*' && heldMethod !== wantedMethod) return false;
  const heldParts = patternParts(heldPattern);
  const wantedParts = patternParts(wantedPattern);
  const open = heldParts.at(-1) === '*';
  const fixed = open ? heldParts.slice(0, -1) : heldParts;
  // An open pattern asked for (`/x/*`) reaches below its own length, so only an open one can hold it.
  const wantedOpen = wantedParts.at(-1) === '*';
  const wantedFixed = wantedOpen ? wantedParts.slice(0, -1) : wantedParts;
  if (wantedOpen && !open) return false;
  if (open ? wantedFixed.length < fixed.length : wantedFixed.length !== fixed.length) return false;
  return fixed.every((part, at) => part === '*' || part === wantedFixed[at]);
}

/** Which objects' events the credentials let a caller hear: every one, or only those they name. */
export function audibleObjects(caller: Pick<Caller, 'credentials' | 'scopes'>): 'all' | string[] {
  if (mayCall(caller, 'GET', ['objects', '*'])) return 'all';
  const named = [...caller.credentials, ...(caller.scopes ?? [])].flatMap((credential) => {
    const [, , pattern] = CREDENTIAL.exec(credential) ?? [];
    const [store, id] = patternParts(pattern ?? '');
    return store === 'objects' && id !== undefined && id !== '*' ? [id] : [];
  });
  return [...new Set(named)].filter((id) => mayCall(caller, 'GET', ['objects', id]));
}
