/** A time zone for pages whose texts depend on the day: midnight does not come while a test runs. */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Without summer time, and how far ahead they are. */
const ZONES = [
  ['Asia/Kolkata', 5.5 * HOUR_MS],
  ['Asia/Dubai', 4 * HOUR_MS],
] as const;
/** The first one whose day does not end while the test runs. */
export const [ZONE, ZONE_MS] =
  ZONES.find(([, aheadMs]) => (Date.now() + aheadMs) % DAY_MS < DAY_MS - HOUR_MS) ?? ZONES[0];

/** Midnight in that zone. */
export const midnight = (daysAgo: number): number =>
  Math.floor((Date.now() + ZONE_MS) / DAY_MS) * DAY_MS - ZONE_MS - daysAgo * DAY_MS;
