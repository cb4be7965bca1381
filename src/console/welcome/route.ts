/** The way of the simulated drive: where it is at which second, and how fast. */
const SECONDS_PER_HOUR = 3_600;
/** So long that the speed is that of a car in a town. */
export const ROUND_S = 1_440;
const RADIUS_KM = 3.2;
const KM_PER_DEGREE = 111.32;
const MIDDLE = { lat: 48.1374, lon: 11.5755 };

interface Place {
  readonly lat: number;
  readonly lon: number;
}

/** A closed way with curves. */
function placeAt(second: number): Place {
  const turn = (second / ROUND_S) * 2 * Math.PI;
  const radius = (RADIUS_KM / KM_PER_DEGREE) * (1 + 0.22 * Math.sin(3 * turn) + 0.1 * Math.sin(7 * turn));
  const shrink = Math.cos((MIDDLE.lat * Math.PI) / 180);
  return { lat: MIDDLE.lat + radius * Math.cos(turn), lon: MIDDLE.lon + (radius * Math.sin(turn)) / shrink };
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

/** The packet of this second: its speed is that of the way to the next one. */
export function packetAt(second: number): Record<string, number> {
  const here = placeAt(second);
  const next = placeAt(second + 1);
  const north = (next.lat - here.lat) * KM_PER_DEGREE;
  const east = (next.lon - here.lon) * KM_PER_DEGREE * Math.cos((here.lat * Math.PI) / 180);
  return {
    lat: round(here.lat, 6),
    lon: round(here.lon, 6),
    speed: round(Math.hypot(north, east) * SECONDS_PER_HOUR, 1),
    angle: (Math.round((Math.atan2(east, north) * 180) / Math.PI) + 360) % 360,
    fuel: round(80 - second / 60, 1),
  };
}
