/** The texts of notes on objects in German. */
import type { NoteCatalogue } from './english.js';

export const GERMAN_NOTES: NoteCatalogue = {
  'notes.added': 'Notiz gespeichert',
  'notes.remove': 'Notiz vom {moment} entfernen',
  'notes.removeTitle': 'Diese Notiz entfernen?',
  'notes.save': 'Notiz speichern',
  'notes.text': 'Notiz',
  'notes.title': 'Notizen zu diesem Zeitraum ({count})',
  'notes.toHint': 'Leer: zu einem Zeitpunkt',
};
