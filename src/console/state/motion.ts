/** Whether objects move, and how: as their newest packet says, or the last one that said so. */
import { findCourse, findSpeed } from '../../core/motion-fields.js';

export interface Motion {
  readonly kmh: number;
  /** Degrees; NaN if it is not known. */
  readonly course: number;
  readonly timeMs: number;
}

export type MotionPacket = Readonly<Record<string, unknown>> & { readonly time: number };

interface MovingObject {
  readonly _id: string;
  readonly state?: MotionPacket;
}

export interface Stop {
  readonly timeMs: number;
  /** Whether it may stand there for longer. */
  readonly isAtLeast: boolean;
}

/** A receiver that stands still reports less. */
const MOVING_KMH = 1;
/** A speed that is older says nothing of now. */
export const MOTION_MS = 10 * 60_000;

/** By the `_id` of the object. Read only where the newest packet has no speed. */
const lastMotions = new Map<string, Motion>();
/** By the `_id` of the object: since when it stands, if that is known. */
const stops = new Map<string, Stop>();

export const isMoving = ({ kmh }: Motion): boolean => kmh >= MOVING_KMH;

export function readMotion(packet: MotionPacket): Motion | null {
  const kmh = findSpeed(packet);
  return Number.isNaN(kmh) ? null : { kmh, course: findCourse(packet), timeMs: packet.time };
}

/** Null of an object that says nothing of it, such as a sensor. */
export function motionOf({ _id, state }: MovingObject): Motion | null {
  if (state === undefined) return null;
  const motion = readMotion(state);
  if (motion !== null || lastMotions.size === 0) return motion;
  const last = lastMotions.get(_id);
  return last !== undefined && state.time - last.timeMs <= MOTION_MS ? last : null;
}

/** Since when an object stands that stands now, as far as this page knows. */
export const stopOf = (id: string): Stop | null => stops.get(id) ?? null;

export const keepStop = (id: string, stop: Stop): unknown => stops.set(id, stop);

/** Keeps what the state before tells, when a packet has become the new one. */
export function keepMotion(id: string, state: MotionPacket, before: MotionPacket | undefined): void {
  if (before === undefined || state === before) return;
  const last = motionOf({ _id: id, state: before });
  if (last === null) return;
  const motion = readMotion(state);
  if (motion === null) lastMotions.set(id, last);
  else if (isMoving(motion)) stops.delete(id);
  else if (isMoving(last)) stops.set(id, { timeMs: motion.timeMs, isAtLeast: false });
}

export function forgetMotion(id: string): void {
  lastMotions.delete(id);
  stops.delete(id);
}
