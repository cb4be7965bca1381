/** What an object does, in words: `Moving 51 km/h north-east`, `Standing for 23 min`, `Silent · 3 hours ago`. */

import { SPEED_NAMES } from '../../core/motion-fields.js';
import { type Activity, activityOf } from '../state/activity.js';
import type { OpenAlarm } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { type FleetObject, stateRevision } from '../state/fleet.js';
import { isLost } from '../state/live.js';
import { type Motion, motionOf, stopOf } from '../state/motion.js';
import { presenceOf } from '../state/presence.js';
import { formatAge, formatClock, formatDay, formatNumber, t } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import { modelOf, toShown } from './values.js';

const MINUTE_MS = 60_000;
/** The names of eight directions, from north through east. */
const DIRECTIONS = 8;

/** Whether it says how an object moves, or did when it was last heard of. */
export const hasSentence = (object: FleetObject): boolean => !isLost.value && motionOf(object) !== null;

export function Sentence({ object }: { object: FleetObject }) {
  // The object stays the same when its state changes: nothing else would draw this again before the next second.
  stateRevision.value;
  const { state } = object;
  if (state === undefined) return <>{t('state.never')}</>;
  const age = formatAge(state.time, nowMs.value);
  const activity = activityOf(object, nowMs.value);
  if (isLost.value || activity === 'reporting') {
    return (
      <>
        <span class="visually-hidden">{t(`state.${presenceOf(object)}`)}</span> {age}
      </>
    );
  }
  return <>{sentenceOf(object, activity, age)}</>;
}

function sentenceOf(object: FleetObject, activity: Activity, age: string): string {
  const motion = motionOf(object);
  if (activity === 'moving' && motion !== null) {
    const isOld = nowMs.value - motion.timeMs > MINUTE_MS;
    const text = movingText(motion, speedUnitOf(object));
    return isOld ? `${text} · ${age}` : text;
  }
  const standing = activity === 'standing' ? standingText(object._id) : null;
  if (standing !== null) return standing;
  return `${t(`filter.${activity as 'standing' | 'silent' | 'offline'}`)} · ${age}`;
}

/** `Cargo too warm since 09:14`. */
export function alarmText({ name, raised }: OpenAlarm): string {
  const isToday = new Date(raised).toDateString() === new Date(nowMs.value).toDateString();
  return t('sentence.alarm', { name, moment: isToday ? formatClock(raised, false) : formatDay(raised) });
}

function standingText(id: string): string | null {
  const stop = stopOf(id);
  if (stop === null) return null;
  const spanMs = Math.max(1, Math.floor((nowMs.value - stop.timeMs) / MINUTE_MS)) * MINUTE_MS;
  return t(stop.isAtLeast ? 'sentence.standingAtLeast' : 'sentence.standingFor', { span: formatSpan(spanMs) });
}

/** As the model of the object declares it. */
function speedUnitOf({ _id, model }: FleetObject): string {
  const units = SPEED_NAMES.map((name) => toShown(name, 0, modelOf(_id, model)).unit);
  return units.find((unit) => unit !== '') ?? '';
}

function movingText({ kmh, course }: Motion, unit: string): string {
  const speed = `${formatNumber(kmh, { maximumFractionDigits: 0 })} ${unit}`.trim();
  if (Number.isNaN(course)) return t('sentence.moving', { speed });
  const direction = (Math.round((course * DIRECTIONS) / 360) + DIRECTIONS) % DIRECTIONS;
  return t('sentence.movingTo', { speed, direction: t(`direction.${direction as 0}`) });
}
