/** The simulated vehicle of `vigil device`. Pure. */
import type { Packet } from './recording.js';

const LAP_S = 1140;
const DRIVE_S = 1080;
const STOPS = 9;

/** The state of the simulated vehicle at a second of its trip: rounds of 12 km with stops at lights, then a break. */
export function vehicleAt(second: number): Packet {
  const driven = Math.min((second % LAP_S) / DRIVE_S, 1);
  // The driven share of the round; its slope falls to zero at every stop.
  const way = (share: number) => share - Math.sin(2 * Math.PI * STOPS * share) / (2 * Math.PI * STOPS);
  const [north, east] = metersAt(way(driven));
  const [northAhead, eastAhead] = metersAt(way(driven) + 0.0001);
  const [northNext, eastNext] = metersAt(way(driven + 1 / DRIVE_S));
  const heading = (Math.atan2(eastAhead - east, northAhead - north) * 180) / Math.PI;
  return {
    lat: Number((48.14 + north / 111_195).toFixed(6)),
    lon: Number((11.57 + east / 74_200).toFixed(6)),
    speed: driven < 1 ? Number((Math.hypot(northNext - north, eastNext - east) * 3.6).toFixed(1)) : 0,
    angle: Math.round(heading + 360) % 360,
    fuel: Number((60 - (((Math.floor(second / LAP_S) + way(driven)) * 0.96) % 48)).toFixed(2)),
    ignition: driven < 1,
  };
}

function metersAt(share: number): [number, number] {
  const turn = 2 * Math.PI * share;
  const radius = 1 + 0.12 * Math.sin(3 * turn);
  return [1720 * radius * Math.sin(turn), 1930 * radius * Math.cos(turn)];
}
