/** The texts of what a model could declare in German. */
import type { ProposalCatalogue } from './english.js';

export const GERMAN_PROPOSALS: ProposalCatalogue = {
  'proposals.add.one': '{count} Parameter hinzufügen',
  'proposals.add.other': '{count} Parameter hinzufügen',
  'proposals.all': 'Alle wählen',
  'proposals.find': 'Parameter suchen',
  'proposals.more': '{count} weitere: Suchen Sie danach',
  'proposals.none': 'Die letzten Pakete enthalten nichts, was das Modell nicht schon nennt.',
  'proposals.noneOfThem': 'Keine wählen',
  'proposals.object': 'Objekt, dessen Pakete betrachtet werden',
  'proposals.otherObject': 'Ein anderes Objekt als die des Modells',
  'proposals.title': 'Parameter in Paketen',
};
