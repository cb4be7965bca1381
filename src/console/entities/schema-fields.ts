/** The fields of the form of an entity, from the JSON Schema of its store. */
import { type EntityField, OWN_FIELDS } from './field.js';

type Json = Record<string, unknown>;

/** All fields of an entity that the form does not show otherwise. */
export const REST: EntityField = { name: '', text: 'data.otherFields', kind: 'rest', hint: 'data.entityHint' };
/** The whole entity. */
export const WHOLE: EntityField = { ...REST, text: 'data.entity' };

const MOST_FIELDS = 50;
const LONG_CHARACTERS = 200;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A field for each property that the schema describes, and one for all others where it permits them. */
export function fieldsOfSchema(schema: unknown): readonly EntityField[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [WHOLE];
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  // The service sets its own fields and those that begin with `_`; a field with a dot cannot be stored.
  const isField = (name: string): boolean => /^[^_.$][^.]*$/.test(name) && !OWN_FIELDS.has(name);
  const named = Object.entries(schema.properties).filter(([name]) => isField(name));
  const fields = named.slice(0, MOST_FIELDS).map(([name, part]) => toField(name, part, required.has(name)));
  if (fields.length === 0) return [WHOLE];
  const isClosed = schema.additionalProperties === false && !isObject(schema.patternProperties);
  return isClosed && named.length <= MOST_FIELDS ? fields : [...fields, REST];
}

function toField(name: string, part: unknown, isRequired: boolean): EntityField {
  const json: EntityField = { name, label: name, kind: 'json', isRequired };
  if (!isObject(part)) return { ...json, cleared: null };
  const shared = {
    label: textOf(part.title) ?? name,
    about: textOf(part.description) ?? '',
    ...(part.default !== undefined && { initial: part.default }),
  };
  const types = [part.type].flat();
  const known = { ...json, ...shared, ...toKind(part, types) };
  return isNullable(part, types) ? { ...known, cleared: null } : known;
}

const isNullable = (part: Json, types: readonly unknown[]): boolean =>
  Array.isArray(part.enum) ? part.enum.includes(null) : part.type === undefined || types.includes('null');

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const isPlain = (value: unknown): boolean => typeof value !== 'object' && value !== undefined;

function toKind(part: Json, types: readonly unknown[]): Partial<EntityField> {
  const type = types.filter((one) => one !== 'null').length === 1 ? types.find((one) => one !== 'null') : undefined;
  if (Array.isArray(part.enum)) {
    const options = [...new Set(part.enum)].filter((value) => value !== null);
    return options.every(isPlain) ? { kind: 'choice', options } : {};
  }
  if (type === 'boolean') return { kind: 'choice', options: [true, false] };
  if (type === 'number' || type === 'integer') return { kind: 'number' };
  if (type === 'string') return toTextKind(part);
  return type === 'array' && isObject(part.items) ? toListKind(part.items, part.minItems) : {};
}

function toTextKind({ format, pattern, minLength = 0, maxLength }: Json): Partial<EntityField> {
  if (format === 'date') return { kind: 'date' };
  const isLong = typeof maxLength === 'number' && maxLength > LONG_CHARACTERS;
  const kind = isLong ? 'paragraph' : 'text';
  return format === undefined && pattern === undefined && minLength === 0 ? { kind, cleared: '' } : { kind };
}

function toListKind({ type, enum: options }: Json, minItems: unknown = 0): Partial<EntityField> {
  const cleared = minItems === 0 ? { cleared: [] } : {};
  if (Array.isArray(options) && options.length > 0 && options.every(isPlain))
    return { kind: 'several', options: [...new Set(options)], ...cleared };
  return type === 'string' && options === undefined ? { kind: 'lines', ...cleared } : {};
}
