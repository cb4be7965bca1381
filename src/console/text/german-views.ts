/** The texts of tiles in German. */
import type { ViewsCatalogue } from './english.js';

export const GERMAN_VIEWS: ViewsCatalogue = {
  'columns.choose': 'Werte',
  'columns.find': 'Wert suchen',
  'columns.more': '{count} weitere: mit der Suche zu finden',
  'columns.none': 'Noch keine Werte',
  'columns.usual': 'Übliche Werte',
  'tiles.without': 'Ohne Position',
  'table.alarm': 'Alarm',
  'table.columns': 'Spalten',
  'table.csv': 'CSV',
  'table.group': 'Gruppe',
  'table.id': 'Id',
  'table.labels': 'Labels',
  'table.model': 'Modell',
  'table.name': 'Name',
  'table.seen': 'Zuletzt gesehen',
  'table.state': 'Zustand',
  'table.status': 'Status',
  'tiles.all': 'Alle {count} zeigen',
  'views.for': 'Für',
  'views.none': 'Noch keine gespeicherten Ansichten',
  'views.onlyMe': 'Nur für mich',
  'views.remove': '{name} entfernen',
  'views.save': 'Speichern, was gezeigt wird',
  'views.saved': '{name} ist gespeichert',
};
