/** Own ids: the names that owners give their objects. */

/** The form of an `_id`. */
export const ID = /^[0-9a-f]{24}$/i;

/** Whether an own id can name an object: not the wildcard `*`, not the form of an `_id`, not blank. */
export function isValidOwnId(ownId: string): boolean {
  return ownId.trim() !== '' && ownId !== '*' && !ID.test(ownId);
}
