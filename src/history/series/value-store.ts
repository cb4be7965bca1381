/** Values that are kept until their bucket ends, in bounded memory. Pure. */
import { tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';

const FIRST_VALUES = 256;

export interface ValueStore {
  /** Throws 413. */
  add(value: number): void;
  /** All of them; they count until `release`. */
  take(): { readonly values: Float64Array; readonly release: () => void };
}

/** Makes stores that together hold no more than there may be. */
export function createValueStores(limit: number = LIMITS.seriesValues): () => ValueStore {
  let total = 0;
  return () => {
    let values = new Float64Array(FIRST_VALUES);
    let count = 0;
    return {
      add(value) {
        if (++total > limit) {
          throw tooLarge(`fn: a percentile of more than ${limit} values at once; ask for shorter buckets`);
        }
        if (count === values.length) {
          const grown = new Float64Array(2 * count);
          grown.set(values);
          values = grown;
        }
        values[count++] = value;
      },
      take() {
        const taken = values.slice(0, count);
        const held = count;
        count = 0;
        if (values.length > SMALL_VALUES) values = new Float64Array(FIRST_VALUES);
        return {
          values: taken,
          release: () => {
            total -= held;
          },
        };
      },
    };
  };
}

/** Memory for more is not kept for the next bucket. */
const SMALL_VALUES = 65_536;
