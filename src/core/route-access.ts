/** Which permission a request needs, by its method and the segments of its path. */
import { isReport } from './report-kinds.js';

// Every caller may read the own identity and log out. Live events are filtered by the feed, and `/series` and reports check the
// permission for each object.
export const isForAll = ([first, second, ...others]: readonly string[]): boolean =>
  FOR_ALL.has(first) ||
  (first === 'series' && second === undefined) ||
  (first === 'reports' && isReport(second) && others.length === 0);
const FOR_ALL: ReadonlySet<string | undefined> = new Set(['auth', 'events']);

// Reading audit events requires `* /audit`, and settings `* /settings`; `GET /*` is not enough.
export const requiredMethod = (method: string, [store]: readonly string[]): string =>
  store === 'audit' || store === 'settings' ? '*' : method;
