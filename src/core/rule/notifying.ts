/** Whom a rule notifies, and how often: parsing, with errors that name the place. Pure. */
import { badRequest } from '../errors.js';
import { isObject, type Json } from '../json.js';
import { LIMITS } from '../limits.js';
import { ID } from '../own-id.js';
import { parseSpan } from './condition.js';
import { parseTemplate } from './template.js';

/** Who is notified: the users, and those of the group and of the groups below it. */
export interface Notify {
  readonly users: readonly string[];
  readonly group: string | null;
  /** What the message says; null for what the condition read. */
  readonly text: string | null;
}

export function parseNotify(value: Json, place: string): Notify {
  if (!isObject(value)) throw badRequest(`${place}: expected an object with users or group`);
  const other = Object.keys(value).find((name) => !['users', 'group', 'text'].includes(name));
  if (other !== undefined) throw badRequest(`${place}.${other}: not known; expected users, group and text`);
  const { users = null, group = null, text = null } = value;
  if (users === null && group === null) throw badRequest(`${place}: expected users or group`);
  if (group !== null && !isEntityId(group)) throw badRequest(`${place}.group: expected the _id of a group`);
  return {
    users: users === null ? [] : parseUsers(users, `${place}.users`),
    group: group === null ? null : (group as string).toLowerCase(),
    text: parseTemplate(text, `${place}.text`),
  };
}

const isEntityId = (value: Json): value is string => typeof value === 'string' && ID.test(value);

function parseUsers(value: Json, place: string): readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > LIMITS.notifiedUsersNamed) {
    throw badRequest(`${place}: expected a list of 1 to ${LIMITS.notifiedUsersNamed} _ids of users`);
  }
  for (const [index, id] of value.entries()) {
    if (!isEntityId(id)) throw badRequest(`${place}[${index}]: expected the _id of a user`);
  }
  return [...new Set(value.map((id) => String(id).toLowerCase()))];
}

/** How often those who were notified are reminded; null for never. */
export function parseRemind(value: Json): number | null {
  if (value === null) return null;
  const remindMs = parseSpan(value, 'remind');
  if (remindMs >= LIMITS.remindMinMs) return remindMs;
  throw badRequest(`remind: expected at least ${LIMITS.remindMinMs / 1_000} s`);
}
