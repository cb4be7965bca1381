/** The texts of walls in German. */
import type { WallCatalogue } from './english.js';

export const GERMAN_WALL: WallCatalogue = {
  'wall.about': 'Ein Bildschirm, den niemand bedient, zeigt diese Ansichten im Wechsel, live und ohne Anmeldung.',
  'wall.address': 'Adresse für den Bildschirm',
  'wall.ended': 'Diese Adresse gilt nicht mehr',
  'wall.every': 'Sekunden je Ansicht',
  'wall.kept': 'Fertig',
  'wall.lifetime': 'Gültig für',
  'wall.lost': 'Keine Verbindung seit {moment}',
  'wall.make': 'Adresse erstellen',
  'wall.missing': 'Diese Ansichten gibt es nicht mehr',
  'wall.once':
    'Wer diese Adresse hat, kann bis {time} alle Objekte lesen, die Sie sehen, nicht nur die dieser Ansichten. Sie wird einmal gezeigt; ihr Token steht bei Ihren, wo Sie es widerrufen können.',
  'wall.tokenName': 'Bildschirm: {names}',
  'wall.views': 'Ansichten',
};
