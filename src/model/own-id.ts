/** Own ids: the names that owners give their objects. */

/** The form of an `_id`. */
export const ID = /^[0-9a-f]{24}$/i;

/** Clients resolve these parts of a path as folders, also percent-encoded, so no request reaches an object of this name. */
export const isFolderName = (ownId: string): boolean => ownId === '.' || ownId === '..';

/**
 * Whether an own id can name an object: not the wildcard `*`, not the form of an `_id`, not blank. Former versions accepted such
 * ids; the stored ones name no object.
 */
export function isValidOwnId(ownId: string): boolean {
  return ownId.trim() !== '' && ownId !== '*' && !ID.test(ownId);
}
