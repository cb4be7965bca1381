/** What objects are called by those who own them. */

/** The form of an `_id`. */
export const ID = /^[0-9a-f]{24}$/i;

/**
 * Whether an own id can name an object: not what stands for every object, nor what has the form of another one's `_id`, nor
 * nothing that anybody could see. Former versions took such ids: those that are stored name nobody.
 */
export function namesObject(ownId: string): boolean {
  return ownId.trim() !== '' && ownId !== '*' && !ID.test(ownId);
}
