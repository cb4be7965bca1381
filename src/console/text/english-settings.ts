/** The texts of the settings of the installation in English. */
export const ENGLISH_SETTINGS = {
  'mapChoice.about': 'For everybody who uses this installation. Open pages show it when they are loaded again.',
  'mapChoice.ask': 'Streets on the map?',
  'mapChoice.attribution': 'Whose map it is',
  'mapChoice.attributionAbout': 'Most licences want it shown, such as © OpenStreetMap.',
  'mapChoice.environment': '{names} decides the map. What is saved here counts as soon as that is no longer set.',
  'mapChoice.kind': 'Map',
  'mapChoice.none': 'No streets',
  'mapChoice.noneAbout':
    'Countries and towns, which are part of Vigil. For closed networks: nothing is asked of other servers.',
  'mapChoice.openfreemap': 'Streets of OpenFreeMap',
  'mapChoice.openfreemapAbout':
    'OpenFreeMap needs no key and has no limit. The browsers of your users ask its server for the parts of the map that they look at; Vigil does not.',
  'mapChoice.origins': 'Other servers that it loads from',
  'mapChoice.originsAbout': 'Optional: origins of fonts, images or tiles, such as https://fonts.example.',
  'mapChoice.own': 'A map of your own …',
  'mapChoice.style': 'A style of your own',
  'mapChoice.styleAbout': 'A MapLibre style of a map service or of your own tile server. Browsers load it.',
  'mapChoice.tiles': 'Tiles of your own',
  'mapChoice.tilesAbout': 'Images of a tile server, by zoom, column and row. Browsers load them.',
  'mapChoice.title': 'Map',
  'mapChoice.url': 'Address',
} as const;
