/** A field of the form of an entity. */
import type { TextKey } from '../text/english.js';

export type FieldKind = TextKind | 'check' | 'choice' | 'several' | 'reference' | 'lines' | 'json' | 'rest' | 'cards';
type TextKind = 'text' | 'paragraph' | 'password' | 'email' | 'date' | 'number';

export interface EntityField {
  readonly name: string;
  /** What it is called; without it, `label` is shown as it is. */
  readonly text?: TextKey;
  readonly label?: string;
  readonly hint?: TextKey;
  /** A hint in the words of an administrator. */
  readonly about?: string;
  /**
   * `paragraph`: text of several lines; `cards`: a kind of source, with what sends it; `choice`: one of `options`; `several`: a list of some `options`; `reference`: the `_id` of
   * an entity of `store`; `lines`: a list of texts; `json`: any value; `rest`: all fields that the form does not show.
   */
  readonly kind: FieldKind;
  /** Of `lines`: they are permissions, which are also shown as boxes. */
  readonly arePermissions?: boolean;
  readonly options?: readonly unknown[];
  readonly store?: string;
  readonly isRequired?: boolean;
  /** Set when the entity is created, and not changed any more. */
  readonly isFixed?: boolean;
  /** The group of an entity: no change of the entity changes it, but a move does. */
  readonly isMoved?: boolean;
  /** The kinds of sources that have it; all without this. */
  readonly kinds?: readonly string[];
  /** The field that is sent together with it, also unchanged: a key belongs to the address that it is given with. */
  readonly sentWith?: string;
  /** What a new entity begins with. */
  readonly initial?: unknown;
  /** The value of a field that was emptied; `undefined` where it cannot be, because a change removes nothing. */
  readonly cleared?: unknown;
}

/** What the service says of every entity. */
export const OWN_FIELDS: ReadonlySet<string> = new Set([
  '_id',
  'owner',
  'group',
  'branch',
  'access',
  'time',
  '_at',
  'success',
]);
