/** What the rows of a table would do: create an object, change one, or nothing, and why some are refused. Pure. */
import { ID, isValidOwnId, toOwnId } from '../../core/own-id.js';
import type { Sheet } from './csv.js';

const FIELDS = ['id', 'name', 'model', 'group', 'labels', 'description'] as const;

/** The field of a column: one of an object, a member of its `config`, or none. */
export type Target = '' | (typeof FIELDS)[number] | `config.${string}`;

export interface Present {
  readonly _id: string;
  readonly id: string;
  readonly name: string;
  readonly model?: string;
  readonly group?: string;
  readonly labels?: unknown;
  readonly description?: string | null;
  readonly config?: unknown;
}

interface Named {
  readonly _id: string;
  readonly name?: string;
}

/** What there is, and what the user may do. */
export interface Known {
  /** By their own ids. */
  readonly objects: ReadonlyMap<string, Present>;
  readonly groups: readonly Named[];
  readonly models: readonly Named[];
  readonly may: { readonly create: boolean; readonly change: boolean; readonly move: boolean };
}

export type FaultName =
  | 'noId'
  | 'badId'
  | 'twice'
  | 'noName'
  | 'unknownGroup'
  | 'unknownModel'
  | 'severalGroups'
  | 'severalModels'
  | 'mayNotCreate'
  | 'mayNotChange'
  | 'mayNotMove';

export interface PlannedRow {
  readonly row: number;
  readonly id: string;
  readonly name: string;
  readonly kind: 'create' | 'change' | 'same' | 'refused';
  readonly fault?: { readonly name: FaultName; readonly value: string };
  /** The fields that it sets, or changes. */
  readonly fields: readonly string[];
  /** The object that it changes. */
  readonly _id: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  /** The group that the object moves to, or is created in. */
  readonly group: string | null;
}

const WORDS: readonly (readonly [Target, RegExp])[] = [
  ['id', /^(id|identifier|kennung)$/i],
  ['name', /^(name|bezeichnung)$/i],
  ['model', /^(model|modell)$/i],
  ['group', /^(group|gruppe)$/i],
  ['labels', /^(labels?|tags?|etikett(en)?)$/i],
  ['description', /^(description|beschreibung)$/i],
];

/** The field that the name of a column says; each field once. */
export function guessTargets(columns: readonly string[]): Target[] {
  const taken = new Set<Target>();
  return columns.map((column) => {
    const known = WORDS.find(([, words]) => words.test(column))?.[0];
    const target = known ?? (/^config\../.test(column) ? (column as Target) : '');
    if (taken.has(target)) return '';
    if (target !== '') taken.add(target);
    return target;
  });
}

/** The fields that a column may be matched to. */
export const targetsFor = (column: string): Target[] => {
  const member = column.replace(/^config\./, '').replaceAll(/[$\0]/g, '');
  return ['', ...FIELDS, ...(member === '' ? [] : [`config.${member}` as const])];
};

/** The own ids of all rows, as they are stored. */
export function idsOf({ rows }: Sheet, targets: readonly Target[]): string[] {
  const at = targets.indexOf('id');
  return [...new Set(rows.map(({ cells }) => toOwnId(cells[at] ?? '')))].filter(isValidOwnId);
}

export function planRows(sheet: Sheet, targets: readonly Target[], known: Known): PlannedRow[] {
  const first = new Map<string, number>();
  return sheet.rows.map(({ row, cells }) => {
    const values = new Map(targets.flatMap((target, at) => (target && cells[at] ? [[target, cells[at]]] : [])));
    const id = toOwnId(values.get('id') ?? '');
    const earlier = first.get(id);
    if (earlier === undefined) first.set(id, row);
    return planRow({ row, id, values, earlier }, known);
  });
}

interface Given {
  readonly row: number;
  readonly id: string;
  readonly values: ReadonlyMap<string, string>;
  /** A row above with the same id. */
  readonly earlier: number | undefined;
}

function planRow({ row, id, values, earlier }: Given, known: Known): PlannedRow {
  const present = known.objects.get(id);
  const name = values.get('name') ?? present?.name ?? '';
  const about = { row, id, name, _id: present?._id ?? null };
  const refuse = (fault: FaultName, value = ''): PlannedRow => {
    return { ...about, kind: 'refused', fault: { name: fault, value }, fields: [], body: {}, group: null };
  };
  if (id === '') return refuse('noId');
  if (!isValidOwnId(id)) return refuse('badId', id);
  if (earlier !== undefined) return refuse('twice', String(earlier));
  if (name === '') return refuse('noName');
  const group = find(known.groups, values.get('group'));
  const model = find(known.models, values.get('model'));
  if (group.count !== 1) return refuse(group.count === 0 ? 'unknownGroup' : 'severalGroups', values.get('group'));
  if (model.count !== 1) return refuse(model.count === 0 ? 'unknownModel' : 'severalModels', values.get('model'));
  const body = bodyOf(values, model._id, present);
  const fields = Object.keys(body);
  if (present === undefined) {
    if (!known.may.create) return refuse('mayNotCreate');
    return { ...about, kind: 'create', fields: [], body: { id, ...body }, group: group._id };
  }
  const isMoved = group._id !== null && group._id !== present.group;
  if (isMoved && !known.may.move) return refuse('mayNotMove');
  if (fields.length > 0 && !known.may.change) return refuse('mayNotChange');
  if (isMoved) fields.push('group');
  return { ...about, kind: fields.length > 0 ? 'change' : 'same', fields, body, group: isMoved ? group._id : null };
}

/** By `_id`, else by name; nothing is asked for by an empty cell. */
function find(all: readonly Named[], wanted: string | undefined): { _id: string | null; count: number } {
  if (wanted === undefined) return { _id: null, count: 1 };
  // Who may not read the store may know the `_id`.
  if (ID.test(wanted)) return { _id: wanted.toLowerCase(), count: 1 };
  const found = all.filter(({ name }) => name === wanted);
  return { _id: found[0]?._id ?? null, count: found.length };
}

/** The fields that differ from the present object. An empty cell leaves its field as it is. */
function bodyOf(values: ReadonlyMap<string, string>, model: string | null, present: Present | undefined) {
  const body: Record<string, unknown> = {};
  const config = withoutPrototype();
  const set = (name: 'name' | 'model' | 'description', value: string | null | undefined): void => {
    if (value && value !== present?.[name]) body[name] = value;
  };
  set('name', values.get('name'));
  set('model', model);
  set('description', values.get('description'));
  const labels = values
    .get('labels')
    ?.split(/[,;|]/)
    .map((label) => label.trim());
  const wanted = labels && [...new Set(labels)].filter((label) => label !== '');
  if (wanted && JSON.stringify(wanted) !== JSON.stringify(present?.labels)) body.labels = wanted;
  for (const [target, text] of values) {
    if (!target.startsWith('config.')) continue;
    const path = target.slice('config.'.length).split('.');
    const value = asBefore(text, memberAt(present?.config, path));
    if (value !== memberAt(present?.config, path)) setMember(config, path, value);
  }
  if (Object.keys(config).length > 0) body.config = config;
  return body;
}

/** Values are text, but where the object has a number or a boolean. */
function asBefore(text: string, before: unknown): unknown {
  if (typeof before === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  if (typeof before === 'number' && Number.isFinite(Number(text))) return Number(text);
  return text;
}

const memberAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[name] : undefined,
    value,
  );

/** A column may be called `config.__proto__`: that is a member as any other, which the service refuses. */
const withoutPrototype = (): Record<string, unknown> => Object.create(null);

function setMember(into: Record<string, unknown>, [name = '', ...others]: readonly string[], value: unknown): void {
  if (others.length === 0) {
    into[name] = value;
    return;
  }
  const inner = (into[name] ?? withoutPrototype()) as Record<string, unknown>;
  into[name] = inner;
  setMember(inner, others, value);
}
