/** The texts of the search for objects, pages and actions in English. */
export const ENGLISH_PALETTE = {
  'palette.action': 'Action',
  'palette.add': 'Add an object',
  'palette.command': 'Send a command to {name}',
  'palette.compare': 'Compare numbers of objects',
  'palette.count.one': '{count} result',
  'palette.count.other': '{count} results',
  'palette.history': 'History of {name}',
  'palette.near': 'Objects near “{place}”',
  'palette.object': 'Object',
  'palette.open': 'Open {name}',
  'palette.page': 'Page',
  'palette.placeholder': 'Objects by name or id, views, pages, actions',
  'palette.title': 'Go to',
  'palette.view': 'View',
} as const;
