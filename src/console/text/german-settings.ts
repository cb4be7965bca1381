/** The texts of the settings of the installation in German. */
import type { SettingsCatalogue } from './english.js';

export const GERMAN_SETTINGS: SettingsCatalogue = {
  'mapChoice.about': 'Für alle, die diese Installation nutzen. Offene Seiten zeigen sie, wenn sie neu geladen werden.',
  'mapChoice.ask': 'Straßen auf der Karte?',
  'mapChoice.attribution': 'Wessen Karte es ist',
  'mapChoice.attributionAbout': 'Die meisten Lizenzen verlangen die Angabe, etwa © OpenStreetMap.',
  'mapChoice.environment':
    '{names} bestimmt die Karte. Was hier gespeichert wird, gilt, sobald das nicht mehr gesetzt ist.',
  'mapChoice.kind': 'Karte',
  'mapChoice.none': 'Keine Straßen',
  'mapChoice.noneAbout':
    'Länder und Orte, die Teil von Vigil sind. Für geschlossene Netze: Von anderen Servern wird nichts abgefragt.',
  'mapChoice.openfreemap': 'Straßen von OpenFreeMap',
  'mapChoice.openfreemapAbout':
    'OpenFreeMap braucht keinen Schlüssel und hat kein Limit. Die Browser Ihrer Nutzer fragen dessen Server nach den Teilen der Karte, die sie ansehen; Vigil nicht.',
  'mapChoice.origins': 'Weitere Server, von denen sie lädt',
  'mapChoice.originsAbout': 'Freiwillig: Ursprünge von Schriften, Bildern oder Kacheln, etwa https://fonts.example.',
  'mapChoice.own': 'Eine eigene Karte …',
  'mapChoice.style': 'Ein eigener Stil',
  'mapChoice.styleAbout': 'Ein MapLibre-Stil eines Kartendienstes oder des eigenen Kachelservers. Browser laden ihn.',
  'mapChoice.tiles': 'Eigene Kacheln',
  'mapChoice.tilesAbout': 'Bilder eines Kachelservers nach Zoom, Spalte und Zeile. Browser laden sie.',
  'mapChoice.title': 'Karte',
  'mapChoice.url': 'Adresse',
};
