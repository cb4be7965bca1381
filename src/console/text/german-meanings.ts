/** The texts of the states and thresholds of a parameter in German. */
import type { MeaningCatalogue } from './english.js';

export const GERMAN_MEANINGS: MeaningCatalogue = {
  'meanings.addState': 'Zustand',
  'meanings.addThreshold': 'Schwelle',
  'meanings.from': 'Ab',
  'meanings.label': 'Bezeichnung',
  'meanings.noTone': 'Keiner',
  'meanings.removeState': 'Zustand {number} entfernen',
  'meanings.removeThreshold': 'Schwelle {number} entfernen',
  'meanings.state': 'Zustand {number}',
  'meanings.states': 'Was seine Werte bedeuten',
  'meanings.threshold': 'Schwelle {number}',
  'meanings.thresholds': 'Was seine Zahlen bedeuten: ab einer Zahl, unter einer anderen',
  'meanings.to': 'Unter',
  'meanings.tone': 'Ton',
  'meanings.value': 'Wert',
  'tone.critical': 'Kritisch',
  'tone.info': 'Info',
  'tone.ok': 'In Ordnung',
  'tone.ranges': 'Was Werte bedeuten',
  'tone.stale': 'Veraltet',
  'tone.unknown': 'Unbekannt',
  'tone.warning': 'Warnung',
};
