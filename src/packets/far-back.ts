/** Times far back, for objects whose latest packets are all reports of presence. */
import { DAY_MS } from '../core/units.js';

const YEAR_MS = 365 * DAY_MS;

/**
 * Up to which times data are looked for where the latest packets are all reports of presence: those have the server's time, while the
 * clock of the device may be years behind, as after its week number has rolled over.
 */
export const findFarBackMs = (nowMs: number): readonly number[] =>
  [30 * DAY_MS, YEAR_MS, 5 * YEAR_MS, 10 * YEAR_MS, 20 * YEAR_MS].map((ms) => nowMs - ms);
