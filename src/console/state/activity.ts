/** What an object does, in one word: for the counts, the list and the map. */
import { isMoving, MOTION_MS, motionOf } from './motion.js';

interface ActiveObject {
  readonly _id: string;
  readonly state?: Readonly<Record<string, unknown>> & { readonly time: number; readonly online: boolean };
  readonly config?: { readonly offlineAfter?: unknown } | null;
}

/** `silent`: it should be online, but has not been heard of for long. `reporting`: it says nothing of whether it moves. */
export type Activity = 'moving' | 'standing' | 'reporting' | 'silent' | 'offline' | 'never';

/** Of an object whose `offlineAfter` is not set: nothing else would tell that it is gone. */
const SILENT_MS = 2 * 3_600_000;

export const isOnline = (object: ActiveObject): boolean => object.state?.online === true;

export function activityOf(object: ActiveObject, nowMs: number): Activity {
  const { state } = object;
  if (state === undefined) return 'never';
  if (!state.online) return 'offline';
  const motion = motionOf(object);
  const moves = motion !== null && isMoving(motion);
  const ageMs = nowMs - state.time;
  if (moves ? ageMs > MOTION_MS : ageMs > SILENT_MS && !hasOfflineAfter(object)) return 'silent';
  if (motion === null) return 'reporting';
  return moves ? 'moving' : 'standing';
}

/** The service says so of these. */
const hasOfflineAfter = ({ config }: ActiveObject): boolean => Boolean(config?.offlineAfter);
