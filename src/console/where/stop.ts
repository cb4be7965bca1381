/** Since when an object stands that this page has not seen stopping. Pure. */
import { SPEED_NAMES } from '../../core/motion-fields.js';
import { CONTAINER_NAMES } from '../../core/position-fields.js';
import { isMoving, type MotionPacket, readMotion, type Stop } from '../state/motion.js';

/** The fields of a packet that can contain a speed. */
export const MOTION_NAMES: readonly string[] = [...SPEED_NAMES, ...CONTAINER_NAMES];

/** Finds it in the newest packets of the object, the newest first; `isWhole`: they are all that it ever sent. */
export function findStop(packets: readonly MotionPacket[], isWhole: boolean): Stop | null {
  let timeMs: number | null = null;
  for (const packet of packets) {
    const motion = readMotion(packet);
    if (motion === null) continue;
    if (isMoving(motion)) return timeMs === null ? null : { timeMs, isAtLeast: false };
    timeMs = packet.time;
  }
  return timeMs === null ? null : { timeMs, isAtLeast: !isWhole };
}
