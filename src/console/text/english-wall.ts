/** The texts of walls in English. */
export const ENGLISH_WALL = {
  'wall.about': 'A screen that nobody touches shows these views in turns, live and without a login.',
  'wall.address': 'Address for the screen',
  'wall.ended': 'This address is no longer valid',
  'wall.every': 'Seconds for each view',
  'wall.kept': 'Done',
  'wall.lifetime': 'Valid for',
  'wall.lost': 'No connection since {moment}',
  'wall.make': 'Make the address',
  'wall.missing': 'These views are not there any more',
  'wall.once':
    'Whoever has this address can read all objects that you see, not only those of these views, until {time}. It is shown once; its token is among yours, where you can revoke it.',
  'wall.tokenName': 'Screen: {names}',
  'wall.views': 'Views',
} as const;
