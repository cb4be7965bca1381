/** Shows the labels of a style in the language of the reader, also when that of the console changes. */
import { effect } from '@preact/signals';
import type { Map as GlMap } from 'maplibre-gl';
import { language } from '../text/language.js';
import { labelIn, namedLayersOf } from './labels.js';

export function translateLabels(map: GlMap): void {
  const named = namedLayersOf(map.getStyle());
  const stop = effect(() => {
    for (const [id, text] of named) map.setLayoutProperty(id, 'text-field', labelIn(text, language.value) ?? '');
  });
  map.on('remove', stop);
}
