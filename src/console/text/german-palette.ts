/** The texts of the search for objects, pages and actions in German. */
import type { PaletteCatalogue } from './english.js';

export const GERMAN_PALETTE: PaletteCatalogue = {
  'palette.action': 'Aktion',
  'palette.add': 'Objekt hinzufügen',
  'palette.command': 'Befehl an {name} senden',
  'palette.compare': 'Zahlen von Objekten vergleichen',
  'palette.count.one': '{count} Treffer',
  'palette.count.other': '{count} Treffer',
  'palette.history': 'Verlauf von {name}',
  'palette.near': 'Objekte bei „{place}“',
  'palette.object': 'Objekt',
  'palette.open': '{name} öffnen',
  'palette.page': 'Seite',
  'palette.placeholder': 'Objekte nach Name oder ID, Ansichten, Seiten, Aktionen',
  'palette.title': 'Gehe zu',
  'palette.view': 'Ansicht',
};
