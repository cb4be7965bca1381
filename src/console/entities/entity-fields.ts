/** The fields of the form of an entity: their texts, and what they contribute to a request. */
import { parseExactJson } from '../../core/exact-json.js';
import { toLines } from '../account/token-scopes.js';
import { FieldError } from '../parts/field-errors.js';
import type { Entity, Json } from '../state/api.js';
import { user } from '../state/session.js';
import { t } from '../text/language.js';
import type { EntityField, FieldKind } from './field.js';
import { contentOf } from './kinds.js';

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const DATE = /^\d{4}-\d\d-\d\d$/;
const isAbsent = (value: unknown): boolean => value === undefined || value === null;
const isLine = (value: unknown): boolean => typeof value === 'string' && value.trim() === value && /^.+$/.test(value);
const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  isAbsent(value) || (Array.isArray(value) && value.every(isItem));

/** Whether a kind of field shows the value without changing it. */
const FITS: Partial<Record<FieldKind, (value: unknown, options: readonly unknown[]) => boolean>> = {
  text: (value) => isAbsent(value) || value === '' || (typeof value === 'string' && !/[\r\n]/.test(value)),
  paragraph: (value) => isAbsent(value) || (typeof value === 'string' && !value.includes('\r')),
  date: (value) => isAbsent(value) || DATE.test(String(value)),
  number: (value) => isAbsent(value) || typeof value === 'number',
  choice: (value, options) => isAbsent(value) || options.includes(value),
  several: (value, options) => isListOf(value, (item) => options.includes(item)),
  lines: (value) => isListOf(value, isLine),
};

/** What a field of an entity has, or that of a new one begins with. */
function valueIn({ name, initial }: EntityField, entity: Entity | null): unknown {
  if (entity === null) return initial;
  return Object.hasOwn(entity, name) ? entity[name] : undefined;
}

/** The field as it can show its value: `paragraph` or `json` where its own kind cannot. */
export function fitting(field: EntityField, entity: Entity | null): EntityField {
  const value = valueIn(field, entity);
  const fits = (kind: FieldKind): boolean => FITS[kind]?.(value, field.options ?? []) ?? true;
  if (fits(field.kind)) return field;
  return { ...field, kind: field.kind === 'text' && fits('paragraph') ? 'paragraph' : 'json' };
}

/** What a field begins with. */
export function toText(field: EntityField, entity: Entity | null, all: readonly EntityField[]): string {
  const { kind, store } = field;
  if (kind === 'rest') return toRestText(entity, all);
  const value = valueIn(field, entity);
  if (kind === 'check') return String(value !== false);
  if (kind === 'password') return '';
  if (isAbsent(value)) return entity === null && store === 'groups' ? (user.value?.group ?? '') : '';
  if (kind === 'json') return JSON.stringify(value, null, 2);
  if (kind === 'lines') return (value as string[]).join('\n');
  return kind === 'choice' || kind === 'several' ? JSON.stringify(value) : String(value);
}

function toRestText(entity: Entity | null, all: readonly EntityField[]): string {
  // An entity of which nothing is known has a name, as most have.
  if (entity === null) return all.length === 1 ? JSON.stringify({ name: '' }, null, 2) : '';
  const rest = restOf(entity, all);
  return Object.keys(rest).length === 0 && all.length > 1 ? '' : JSON.stringify(rest, null, 2);
}

function restOf(entity: Entity, all: readonly EntityField[]): Json {
  const shown = new Set(all.map(({ name }) => name));
  return Object.fromEntries(Object.entries(contentOf(entity)).filter(([name]) => !shown.has(name)));
}

/** What a field contributes to a request; nothing where nothing was typed or changed. Throws a FieldError, also for what no change can do. */
export function toPart(field: EntityField, text: string, entity: Entity | null, all: readonly EntityField[]): Json {
  const { kind, name, cleared, isRequired } = field;
  if (entity !== null && text === toText(field, entity, all)) return {};
  if (kind === 'rest') return toRest(text, entity, all);
  if (text.trim() !== '')
    return {
      [name]:
        entity === null ? toValue(field, text) : refuseRemoval(name, valueIn(field, entity), toValue(field, text)),
    };
  if (entity === null) return kind === 'lines' && isRequired ? { [name]: [] } : {};
  if (cleared === undefined) throw new FieldError(name, t('data.notRemovable', { field: name }));
  return { [name]: cleared };
}

/** Returns the new value. A change merges objects: what is left out of one stays, and nobody may believe that it is gone. */
function refuseRemoval(field: string, before: unknown, after: unknown): unknown {
  const removed = removedIn(before, after);
  if (removed !== null) throw new FieldError(field, t('data.notRemovable', { field: removed }));
  return after;
}

/** The path of a member that is there before and not afterwards. */
function removedIn(before: unknown, after: unknown): string | null {
  if (!isObject(before) || !isObject(after)) return null;
  for (const [name, value] of Object.entries(before)) {
    if (!Object.hasOwn(after, name)) return name;
    const below = removedIn(value, after[name]);
    if (below !== null) return `${name}.${below}`;
  }
  return null;
}

function toRest(text: string, entity: Entity | null, all: readonly EntityField[]): Json {
  const rest = text.trim() === '' ? {} : parse('', text);
  if (!isObject(rest)) throw new FieldError('', t('data.notObject'));
  const shown = all.find(({ name }) => name !== '' && Object.hasOwn(rest, name));
  if (shown !== undefined) throw new FieldError('', t('data.shownAbove', { field: shown.name }));
  if (entity === null) return rest;
  const before = restOf(entity, all);
  refuseRemoval('', before, rest);
  const isChanged = ([name, value]: [string, unknown]): boolean =>
    !Object.hasOwn(before, name) || JSON.stringify(value) !== JSON.stringify(before[name]);
  return Object.fromEntries(Object.entries(rest).filter(isChanged));
}

function toValue({ kind, name }: EntityField, text: string): unknown {
  if (kind === 'json' || kind === 'choice' || kind === 'several') return parse(name, text);
  if (kind === 'lines') return toLines(text);
  if (kind === 'check') return text === 'true';
  if (kind !== 'number') return text;
  const number = Number(text);
  if (Number.isFinite(number)) return number;
  throw new FieldError(name, t('data.notNumber'));
}

function parse(name: string, text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    throw new FieldError(name, t('data.notJson', { reason: (error as Error).message }));
  }
}
