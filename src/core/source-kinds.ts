/** The kinds of sources. */

/** Every kind, with its name for people. */
export const SOURCE_KINDS = {
  json: 'JSON',
  osmand: 'Traccar Client, OsmAnd',
  owntracks: 'OwnTracks',
  traccar: 'Traccar',
  chirpstack: 'ChirpStack',
  ttn: 'The Things Stack',
  telegraf: 'Telegraf',
  senml: 'SenML',
  flespi: 'flespi',
  overland: 'Overland',
  shelly: 'Shelly',
} as const;

/** Kinds whose systems take commands for their devices. */
export const COMMANDED_KINDS: readonly string[] = ['traccar', 'chirpstack', 'ttn'];

/** Kinds whose times may have no zone. */
export const ZONED_KINDS: readonly string[] = ['json', 'osmand'];

/** Kinds that have a map. */
export const MAPPED_KINDS: readonly string[] = ['json', 'owntracks', 'chirpstack', 'telegraf'];

export type SourceKindName = keyof typeof SOURCE_KINDS;

export const SOURCE_KIND_NAMES = Object.keys(SOURCE_KINDS) as SourceKindName[];
