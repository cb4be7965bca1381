/** The texts of the first page in German. */
import type { HomeCatalogue } from './english.js';

export const GERMAN_HOME: HomeCatalogue = {
  'direction.0': 'nach Norden',
  'direction.1': 'nach Nordosten',
  'direction.2': 'nach Osten',
  'direction.3': 'nach Südosten',
  'direction.4': 'nach Süden',
  'direction.5': 'nach Südwesten',
  'direction.6': 'nach Westen',
  'direction.7': 'nach Nordwesten',
  'filter.moving': 'In Fahrt',
  'filter.silent': 'Stumm',
  'filter.standing': 'Steht',
  'order.group': 'Nach Gruppe',
  'order.label': 'Reihenfolge',
  'order.model': 'Nach Modell',
  'order.name': 'Nach Name',
  'order.seen': 'Zuletzt gesehen',
  'order.severity': 'Alarme zuerst',
  'sentence.moving': 'Fährt {speed} km/h',
  'sentence.movingTo': 'Fährt {speed} km/h {direction}',
  'sentence.standingAtLeast': 'Steht seit mindestens {span}',
  'sentence.standingFor': 'Steht seit {span}',
};
