/** A simulated drive around a town: one packet a second, sent as a device would send them. */
import { signal } from '@preact/signals';
import { request } from '../state/api.js';
import { packetAt, ROUND_S } from './route.js';

const SECOND_MS = 1_000;
/** A tab that was forgotten does not drive for ever. */
const LONGEST_S = 1_800;

/** The object that drives in this tab, and how many of its packets were stored. */
export const driving = signal<{ readonly objectId: string; readonly sent: number } | null>(null);

let timer: ReturnType<typeof setInterval> | undefined;
let drives = 0;

/** Resolves when the first packet is stored. */
export async function startDrive(objectId: string): Promise<void> {
  stopDrive();
  const mine = ++drives;
  let second = Math.floor(Math.random() * ROUND_S);
  const until = second + LONGEST_S;
  const send = async (): Promise<void> => {
    await request('POST /api/v1/objects/{id}/packets', { path: { id: objectId }, body: packetAt(second++) });
    // A drive that was stopped meanwhile stays stopped.
    if (mine === drives) driving.value = { objectId, sent: (driving.value?.sent ?? 0) + 1 };
  };
  await send();
  if (mine !== drives) return;
  timer = setInterval(() => {
    if (second >= until) stopDrive();
    // A packet that cannot be sent is missing; the next one follows.
    else void send().catch(() => undefined);
  }, SECOND_MS);
}

export function stopDrive(): void {
  drives++;
  clearInterval(timer);
  timer = undefined;
  driving.value = null;
}
