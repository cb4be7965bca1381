/** What values mean. All of it is loaded with the first model that says so. */
import { signal } from '@preact/signals';
import type { Meaning } from '../../core/tones.js';
import { loadPart } from '../state/parts.js';
import { loadTexts, type TextLoader } from '../text/language.js';

export const MEANINGS_TEXTS: TextLoader = {
  en: () => import('../text/english-meanings.js'),
  de: () => import('../text/german-meanings.js'),
};

/** Null until a model declares states or thresholds. */
export const meanings = signal<typeof import('./meanings.js') | null>(null);

interface Declared {
  readonly states?: unknown;
  readonly thresholds?: unknown;
}

/** Loads what is needed to show values of these parameters. */
export async function loadMeanings(declared: readonly Declared[] = []): Promise<void> {
  if (!declared.some(({ states, thresholds }) => states ?? thresholds)) return;
  const load = () => Promise.all([import('./meanings.js'), loadTexts(MEANINGS_TEXTS)]);
  meanings.value ??= (await loadPart(load))[0];
}

export function ToneMark(meaning: Meaning) {
  const part = meanings.value;
  return part && meaning.tone ? <part.Mark {...meaning} /> : null;
}
