/** A simulated drive around a town: one packet a second, sent as a device would send them. */
import { signal } from '@preact/signals';
import { call } from '../state/api.js';

const SECOND_MS = 1_000;
const ROUND_S = 240;
const RADIUS_KM = 3.2;
const KM_PER_DEGREE = 111.32;
const MIDDLE = { lat: 48.1374, lon: 11.5755 };
/** A tab that was forgotten does not drive for ever. */
const LONGEST_S = 1_800;

/** The object that drives in this tab, and how many of its packets were stored. */
export const driving = signal<{ readonly objectId: string; readonly sent: number } | null>(null);

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

function packetAt(second: number): Record<string, number> {
  const [here, next] = [placeAt(second), placeAt(second + 1)];
  const north = (next.lat - here.lat) * KM_PER_DEGREE;
  const east = (next.lon - here.lon) * KM_PER_DEGREE * Math.cos((here.lat * Math.PI) / 180);
  return {
    lat: round(here.lat, 6),
    lon: round(here.lon, 6),
    speed: round(Math.hypot(north, east) * 900, 1),
    angle: (Math.round((Math.atan2(east, north) * 180) / Math.PI) + 360) % 360,
    fuel: round(80 - second / 60, 1),
  };
}

let timer: ReturnType<typeof setInterval> | undefined;

/** Resolves when the first packet is stored. */
export async function startDrive(objectId: string): Promise<void> {
  stopDrive();
  let second = Math.floor(Math.random() * ROUND_S);
  const until = second + LONGEST_S;
  const send = async (): Promise<void> => {
    await call('POST', `/objects/${objectId}/packets`, packetAt(second++));
    driving.value = { objectId, sent: (driving.value?.sent ?? 0) + 1 };
  };
  await send();
  timer = setInterval(() => {
    if (second >= until) stopDrive();
    // A packet that cannot be sent is missing; the next one follows.
    else void send().catch(() => undefined);
  }, SECOND_MS);
}

export function stopDrive(): void {
  clearInterval(timer);
  timer = undefined;
  driving.value = null;
}
