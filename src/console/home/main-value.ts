/** The one value of an object for its row of the list. */
import { COURSE_NAMES, HEIGHT_NAMES, SPEED_NAMES } from '../../core/motion-fields.js';
import { type FleetObject, type Packet, parametersOf } from '../state/fleet.js';
import { isPlaceField } from '../state/places.js';
import { formatValue, modelOf, type Shown, toShown } from './values.js';

const PREFERRED = ['speed', 'temperature', 'value', 'level', 'power', 'pressure', 'humidity'];

/** What a sentence says of an object that moves or stands. */
const MOTION_NAMES: ReadonlySet<string> = new Set([...SPEED_NAMES, ...COURSE_NAMES, ...HEIGHT_NAMES]);

/** `hasSentence`: without its speed and the like. */
export function mainValueOf(packet: Packet, { _id, model }: FleetObject, hasSentence: boolean): Shown | null {
  const parameters = parametersOf(packet).filter(
    ([name, value]) =>
      !isPlaceField(name, value) &&
      (typeof value === 'number' || typeof value === 'boolean') &&
      !(hasSentence && MOTION_NAMES.has(name)),
  );
  const preferred = PREFERRED.flatMap((name) => parameters.filter(([found]) => found === name))[0] ?? parameters[0];
  if (preferred === undefined) return null;
  const shown = toShown(preferred[0], preferred[1], modelOf(_id, model));
  // A number says what it is by its unit, "Yes" does not.
  return typeof shown.value === 'boolean' && shown.text === formatValue(shown.value)
    ? { ...shown, text: `${shown.label}: ${shown.text}` }
    : shown;
}
