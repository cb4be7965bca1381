/** Which permissions a caller may give to others. */
import { OWN_ACCOUNT, type PermissionHolder, parsePattern, reaches } from './access.js';

/** Whether the caller has all the permissions of `granted`: callers cannot grant permissions that they lack. */
export function mayGrant(caller: PermissionHolder, granted: readonly string[]): boolean {
  const coveredBy = (held: readonly string[], wanted: string) => held.some((credential) => covers(credential, wanted));
  return granted.every(
    (wanted) =>
      coveredBy([OWN_ACCOUNT, ...caller.credentials], wanted) &&
      (caller.scopes === null || coveredBy(caller.scopes, wanted)),
  );
}

/** Whether one credential permits every request that the other one does. */
export function covers(held: string, wanted: string): boolean {
  const mine = parsePattern(held);
  const theirs = parsePattern(wanted);
  if (mine === null || theirs === null || (mine.method !== '*' && mine.method !== theirs.method)) return false;
  // An open pattern also matches longer paths, so only an open pattern can cover it.
  return (mine.open || !theirs.open) && reaches(mine, theirs.parts);
}
