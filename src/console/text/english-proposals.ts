/** The texts of what a model could declare in English. */
export const ENGLISH_PROPOSALS = {
  'proposals.add.one': 'Add {count} parameter',
  'proposals.add.other': 'Add {count} parameters',
  'proposals.all': 'Choose all',
  'proposals.find': 'Find a parameter',
  'proposals.more': '{count} more: search to find them',
  'proposals.none': 'There is nothing in the last packets that the model does not declare already.',
  'proposals.noneOfThem': 'Choose none',
  'proposals.object': 'Object whose packets are looked at',
  'proposals.otherObject': 'Another object than those of the model',
  'proposals.title': 'Parameters in packets',
};
