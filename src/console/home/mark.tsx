/** What an object does, as a shape with a color: an arrow in its direction, a disc, a hatched or a crossed one. */
import { activityOf } from '../state/activity.js';
import { nowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';
import { motionOf } from '../state/motion.js';
import { presenceOf } from '../state/presence.js';

/** Decoration: a text beside it says the same. */
export function Mark({ object }: { object: FleetObject }) {
  const presence = presenceOf(object);
  if (presence === 'unknown') return <i class="dot unknown" />;
  const activity = activityOf(object, nowMs.value);
  const course = activity === 'moving' ? motionOf(object)?.course : undefined;
  const isTurned = course !== undefined && !Number.isNaN(course);
  return <i class={`dot ${presence} ${activity}`} style={isTurned ? { rotate: `${course}deg` } : undefined} />;
}
