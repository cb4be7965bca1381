/** Where the object of an alarm was, by the nearest town; its words are loaded for the first alarm with a position. */
import { signal } from '@preact/signals';
import type { Alarm } from '../state/alarms.js';
import { usePart } from '../state/parts.js';
import { loadTexts } from '../text/language.js';

const where = signal<typeof import('../where/where.js') | null>(null);

export function AlarmPlace({ position }: Pick<Alarm, 'position'>) {
  const load = () => Promise.all([loadTexts('home'), loadTexts('where')]).then(() => import('../where/where.js'));
  const part = usePart(where, load, Boolean(position));
  return <span class="alarm-place">{position && part && <part.NearestTown place={position} />}</span>;
}
