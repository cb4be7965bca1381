/** The topics of OwnTracks: `owntracks/<user>/<device>`, or below a root of the user's choice. */

/** The levels that the apps add to the topic of a device. */
const ADDED: ReadonlySet<string> = new Set([
  'cmd',
  'event',
  'info',
  'step',
  'beacon',
  'dump',
  'status',
  'request',
  'waypoint',
  'waypoints',
]);

const ROOT = 'owntracks';

/** The topic to which the app publishes where its device is; all its others are below. Its root is `owntracks`, or any other of the user's. */
export function ownTracksBaseOf(topic: string): string {
  const levels = topic.split('/');
  const rootEnd = levels.indexOf(ROOT) + 1;
  if (rootEnd > 0) return levels.slice(0, rootEnd + 2).join('/');
  const isAdded = levels.length > 2 && ADDED.has(levels.at(-1) as string);
  return (isAdded ? levels.slice(0, -1) : levels).join('/');
}

/** The names of user and device in a topic: after the root `owntracks`, or the last ones after another root, of several levels or none. */
export function namesIn(topic: string): { readonly user: string | undefined; readonly device: string | undefined } {
  const levels = ownTracksBaseOf(topic).split('/');
  const rootEnd = levels.indexOf(ROOT) + 1;
  const [user, device] = rootEnd > 0 ? levels.slice(rootEnd) : [levels.at(-2), levels.at(-1)];
  return { user, device };
}
