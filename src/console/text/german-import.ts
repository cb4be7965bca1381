/** The texts of the page that imports objects in German. */
import type { ImportCatalogue } from './english.js';

export const GERMAN_IMPORT: ImportCatalogue = {
  'import.about':
    'Wählen Sie eine CSV-Datei aus einer Tabellenkalkulation. Die erste Zeile benennt die Spalten. Geschrieben wird erst, wenn Sie gesehen haben, was geschieht; eine leere Zelle lässt ihr Feld, wie es ist.',
  'import.file': 'CSV-Datei',
  'import.title': 'Objekte importieren',
};
