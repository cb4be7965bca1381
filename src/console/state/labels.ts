/** The colors of labels: an entity of the store `labels` describes the label of its name. */
import { signal } from '@preact/signals';
import { toColor } from '../parts/color.js';
import { type Entity, list, VigilError } from './api.js';
import { may } from './session.js';

const MOST = 1_000;

const colors = signal<ReadonlyMap<string, string>>(new Map());
let isAsked = false;

/** The color of a label, as soon as it is known; null for one without. */
export function colorOfLabel(label: string): string | null {
  if (!isAsked && may('GET', '/labels')) {
    isAsked = true;
    void load().catch((error: unknown) => {
      isAsked = false;
      if (!(error instanceof VigilError)) throw error;
    });
  }
  return colors.value.get(label) ?? null;
}

async function load(): Promise<void> {
  const found = await list<Entity>('/labels', { only: ['name', 'color'], limit: MOST });
  const known = new Map<string, string>();
  for (const { name, color } of found) {
    const shown = toColor(color);
    if (typeof name === 'string' && shown !== null) known.set(name, shown);
  }
  colors.value = known;
}
