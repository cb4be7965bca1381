/** Finds the parameters that match patterns of a series, in the packets of its interval. */
import { tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { type PacketBatch, streamPackets } from '../packets/packet-stream.js';
import { clock } from '../platform/clock.js';
import { eachMember, nameAt } from '../platform/mongo/bson/members.js';
import { BSON_TYPES } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { WorkClock } from '../platform/mongo/driver/work-clock.js';
import { matchesName, type NamePattern } from './series/name-pattern.js';

const { DOCUMENT, NULL, UNDEFINED } = BSON_TYPES;
/** The fields of packets that are no parameters. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['_id', '_ts', 'time', '_oid', 'id', '_gid']);
/** How many names are remembered: those of packets are nearly always the same. */
const NAMES_REMEMBERED = 10_000;

export interface NameSearch {
  readonly objectId: string;
  /** From the first, to before the last. */
  readonly fromMs: number;
  readonly endMs: number;
  readonly patterns: readonly NamePattern[];
}

/** Their names in order. Throws 413 for more than `seriesMatches`. */
export async function findMatchingNames(
  database: Database,
  workClock: WorkClock,
  { objectId, fromMs, endMs, patterns }: NameSearch,
): Promise<string[]> {
  const found = new Set<string>();
  const reading = { objectIds: [objectId], time: { from: fromMs, below: endMs }, fields: null, readsAhead: true };
  const matchers = patterns.map(({ levels }) => levels.map(createMatcher));
  for await (const batch of streamPackets(database, reading)) {
    await workClock.count(() => takeNames(batch, matchers, found));
  }
  return [...found].sort();
}

type Matcher = (name: string) => boolean;

/** Compares each name once. */
function createMatcher(level: string): Matcher {
  const known = new Map<string, boolean>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const matches = matchesName(level, name);
    if (known.size >= NAMES_REMEMBERED) known.clear();
    known.set(name, matches);
    return matches;
  };
}

async function takeNames(
  { memory, starts }: PacketBatch,
  matchers: readonly (readonly Matcher[])[],
  found: Set<string>,
): Promise<void> {
  let sinceMs = clock.steadyMs();
  for (const start of starts) {
    for (const levels of matchers) addMatching({ memory, levels, found }, start, '');
    if (found.size > LIMITS.seriesMatches) {
      throw tooLarge(`params: more than ${LIMITS.seriesMatches} parameters match: ask for a narrower pattern`);
    }
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await clock.nextTurn();
    sinceMs = clock.steadyMs();
  }
}

interface Matching {
  readonly memory: Buffer;
  readonly levels: readonly Matcher[];
  readonly found: Set<string>;
}

/** Adds the members of the document at `start` that match; `prefix` are the names above it. */
function addMatching({ memory, levels, found }: Matching, start: number, prefix: string): void {
  const [matches = () => false, ...below] = levels;
  eachMember(memory, start, (type, nameStart, nameEnd, valueStart) => {
    if (type === NULL || type === UNDEFINED || (type === DOCUMENT) !== below.length > 0) return;
    const name = nameAt(memory, nameStart, nameEnd);
    if ((prefix === '' && OWN_FIELDS.has(name)) || !matches(name)) return;
    if (below.length === 0) found.add(prefix + name);
    else addMatching({ memory, levels: below, found }, valueStart, `${prefix}${name}.`);
  });
}
