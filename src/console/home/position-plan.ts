/**
 * Which objects are searched for their last position, in which order, and how many of them. An object without positions costs the
 * server its last 1,000 packets, so most sensors must not be searched.
 */
import { PLACE_NAMES, positionOf } from '../state/places.js';

/** Few, because the user's other searches wait for a request to end. */
const OBJECTS_AT_ONCE = 10;
export const PLAN_LIMITS = {
  /** Of one page load. */
  objects: 500,
  objectsInVain: 100,
  /** If no object of the model has a position. */
  objectsInVainOfModel: 20,
};
/** Objects of a model whose names of positions are looked at. */
const SAMPLES = 50;

interface Searched {
  readonly _id: string;
  readonly model: string;
  readonly state?: { readonly time: number };
}

/** The objects of one model. */
interface Kind {
  readonly waiting: string[];
  /** Not found by the names that others of the model use. */
  readonly again: string[];
  readonly names: Set<string>;
  placed: number;
  inVain: number;
}

export interface PositionSearch {
  readonly ids: readonly string[];
  /** The fields in which the positions may be. The server stops as soon as it has found all of them. */
  readonly names: readonly string[];
  /** To be called when the positions that were found are known. */
  readonly finish: () => void;
  /** To be called when the server did not answer: they are searched for again later. */
  readonly putBack: () => void;
}

/** Takes the objects without a position that ever sent a packet; those of models whose other objects have one come first. */
export function createPositionPlan(objects: Iterable<Searched>, isMissing: (id: string) => boolean) {
  const kinds = groupByModel(objects);
  let left = PLAN_LIMITS.objects;
  let leftInVain = PLAN_LIMITS.objectsInVain;
  const choose = (): Kind | undefined => {
    const waiting = [...kinds.values()].filter((kind) => kind.waiting.length + kind.again.length > 0);
    return (
      waiting.find(({ placed }) => placed > 0) ??
      waiting.find(({ inVain }) => inVain < PLAN_LIMITS.objectsInVainOfModel)
    );
  };
  return {
    /** Null when there is nothing more to search. */
    next(): PositionSearch | null {
      for (let kind = choose(); kind !== undefined && left > 0 && leftInVain > 0; kind = choose()) {
        const { waiting, again, names } = kind;
        const isFirst = again.length === 0 && names.size > 0;
        const from = again.length > 0 ? again : waiting;
        const ids = from.splice(0, Math.min(OBJECTS_AT_ONCE, left)).filter(isMissing);
        if (ids.length === 0) continue;
        const found = kind;
        const finish = (): void => {
          const missing = ids.filter(isMissing);
          found.placed += ids.length - missing.length;
          left -= isFirst ? ids.length - missing.length : ids.length;
          if (isFirst) {
            again.push(...missing);
            return;
          }
          found.inVain += missing.length;
          leftInVain -= missing.length;
        };
        const putBack = (): void => void from.unshift(...ids);
        return { ids, names: isFirst ? [...names] : PLACE_NAMES, finish, putBack };
      }
      return null;
    },
  };
}

function groupByModel(objects: Iterable<Searched>): Map<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const { _id, model, state } of objects) {
    if (state === undefined) continue;
    const kind = kinds.get(model) ?? { waiting: [], again: [], names: new Set(), placed: 0, inVain: 0 };
    kinds.set(model, kind);
    if (positionOf(state) === null) kind.waiting.push(_id);
    else if (kind.placed++ < SAMPLES) for (const name of PLACE_NAMES) if (name in state) kind.names.add(name);
  }
  return kinds;
}
