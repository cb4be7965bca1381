/** The order of an object's packets: by time, then by when they were stored. */

/** A place in that order. */
export interface PlaceInOrder {
  readonly timeMs: number;
  readonly stampUs: number;
}
