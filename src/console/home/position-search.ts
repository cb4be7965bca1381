/** Searches the last packets of objects for their last position. Loaded when there is something to search. */
import { type ControlObjectFields, requestWithoutLogin, VigilError } from '../state/api.js';
import { changed, objects, type Packet, stateRevision, watchRemovals } from '../state/fleet.js';
import { isPlaceless, PLACE_NAMES, placeIn, positionOf, rememberPlace, setPlace } from '../state/places.js';
import { may } from '../state/session.js';
import { createPositionPlan, type PositionSearch } from './position-plan.js';

/** How far back a fix is looked for that exactly 0, 0 hides. */
const FIX_PACKETS = 1_000;
/** Objects of one page load for which that is done. */
const MOST_FIXES = 20;

type Plan = ReturnType<typeof createPositionPlan>;

let plan: Plan | null = null;
let fixesLeft = MOST_FIXES;
const selectedBefore = new Set<string>();
/** One request at a time. */
let lastSearch: Promise<unknown> = Promise.resolve();

const isMissing = (id: string): boolean => isPlaceless(objects.get(id));

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(() => resolve(), ms));

/** Searches an object that the user has selected, whatever the plan says; once. */
export async function searchSelected(id: string): Promise<void> {
  // What was found is forgotten when packets are removed.
  const key = `${id} ${objects.get(id)?.packetsRemoved}`;
  if (!isMissing(id) || selectedBefore.has(key)) return;
  selectedBefore.add(key);
  const putBack = (): void => void selectedBefore.delete(key);
  await search({ ids: [id], names: PLACE_NAMES, finish: () => undefined, putBack });
}

/** Pauses for as long as each request took, so that the server has time for others. */
export async function searchFleet(stop: AbortSignal): Promise<void> {
  plan ??= createPositionPlan(objects.values(), isMissing);
  while (!stop.aborted) {
    const next = plan.next();
    if (next === null) return;
    const startMs = performance.now();
    // Whoever may not ask, or asks a server that is busy, goes without.
    if (!(await search(next))) return;
    await rest(performance.now() - startMs);
  }
}

/** Returns whether the server answered. */
function search({ ids, names, finish, putBack }: PositionSearch): Promise<boolean> {
  const mine = lastSearch.then(async () => {
    try {
      await findPlaces(ids, names);
      finish();
      return true;
    } catch (error) {
      if (!(error instanceof VigilError)) throw error;
      putBack();
      return false;
    }
  });
  lastSearch = mine.catch(() => undefined);
  return mine;
}

async function findPlaces(ids: readonly string[], names: readonly string[]): Promise<void> {
  const query = {
    state: 'latest-of-each',
    where: { _id: ids },
    limit: ids.length,
    only: names.map((name) => `state.${name}`),
  } as const;
  const isCurrent = watchRemovals(ids);
  const found = (await requestWithoutLogin('GET /api/v1/objects', { query })) as ControlObjectFields[];
  for (const { _id, latest = {} } of found) {
    if (!isCurrent(_id)) continue;
    const values = Object.entries(latest);
    const place = placeIn(values.map(([name, { value, time }]) => [name, { value, timeMs: time }]));
    if (place !== null) setPlace(_id, place);
    else if (values.length > 0) await findFix(_id, names);
    changed.add(_id);
  }
  stateRevision.value++;
}

/** The last value of a device that has lost its fix is 0, 0. */
async function findFix(id: string, names: readonly string[]): Promise<void> {
  if (fixesLeft-- <= 0 || !may('GET', `/objects/${id}/packets`)) return;
  const query = { sortBy: '-time', limit: FIX_PACKETS, only: ['time', ...names] };
  const isCurrent = watchRemovals([id]);
  const packets = (await requestWithoutLogin('GET /api/v1/objects/{id}/packets', { path: { id }, query })) as Packet[];
  const fix = packets.find((packet) => positionOf(packet) !== null);
  if (isCurrent(id)) rememberPlace(id, fix);
}
