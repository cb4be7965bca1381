/** The table of kinds of sources, and which of them a payload looks like. */
import { SOURCE_KIND_NAMES, SOURCE_KINDS, type SourceKindName } from '../../core/source-kinds.js';
import { chirpstack } from './chirpstack.js';
import { flespi } from './flespi.js';
import { json } from './json.js';
import type { SourceKind } from './kind.js';
import { osmand } from './osmand.js';
import { overland } from './overland.js';
import { owntracks } from './owntracks.js';
import { senml } from './senml.js';
import { shelly } from './shelly.js';
import { telegraf } from './telegraf.js';
import { traccar } from './traccar.js';
import { ttn } from './ttn.js';

export const KINDS: Readonly<Record<SourceKindName, SourceKind>> = {
  json,
  osmand,
  owntracks,
  traccar,
  chirpstack,
  ttn,
  telegraf,
  senml,
  flespi,
  overland,
  shelly,
};

/** What to say of a payload that is of another kind; null if it looks like none. */
export function explainKind(body: unknown, kind: SourceKindName): string | null {
  const other = SOURCE_KIND_NAMES.find((name) => name !== kind && KINDS[name].matches(body));
  return other === undefined || KINDS[kind].matches(body)
    ? null
    : `this looks like ${SOURCE_KINDS[other]}; the kind of this source is ${kind}, that one is ${other}`;
}
