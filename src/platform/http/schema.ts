/** Schemas of what requests and answers contain: Zod schemas of routes, and JSON Schemas (2020-12) of the documents. */
import { z } from 'zod';

/** A JSON Schema, or any other part of a document. */
export type Part = { readonly [name: string]: unknown };

/** What a route declares: a Zod schema, or a JSON Schema where Zod has no equal one. */
export type Schema = z.ZodType | Part;

export const schemaRef = (name: string): Part => ({ $ref: `#/components/schemas/${name}` });

export const allOf = (...deps: readonly Part[]): Part => ({ allOf: deps });

/** The schema of the documents that has this name. */
export const named = (name: string): z.ZodType => z.unknown().meta(schemaRef(name));

/** A JSON Schema among Zod schemas, where Zod has no equal one. */
export const literal = (part: Part): z.ZodType => z.unknown().meta(part);

/** All of the schemas at once. */
export const every = (first: z.ZodType, ...others: readonly z.ZodType[]): z.ZodType =>
  others.reduce((all, other) => z.intersection(all, other), first);

/** The body of an answer that has nothing else to say. */
export const SUCCESS = z.object({ success: z.literal(true) }).meta({ id: 'Success' });

/** The answer with one entity. */
export const entityOf = (name: string): z.ZodType => every(named(name), SUCCESS);

export const TIME = z.int().describe('Milliseconds since the epoch');

export const COUNT = z.int().min(0);

/** A JSON object with any fields. */
export const ANY_OBJECT = z.record(z.string(), z.unknown());

/** The response of a list: an array, or its summary with `meta`. */
export const pageOf = (element: z.ZodType): z.ZodType => {
  const orNull = z.union([element, z.null()]);
  const summary = z.strictObject({ count: z.int().min(0), first: orNull, last: orNull });
  return z.union([z.array(element), summary.meta({ title: 'With `meta`' })]);
};

export interface Converted {
  readonly schema: Part;
  /** The schemas that it references by name. */
  readonly named: Readonly<Record<string, Part>>;
}

/** Converts the schema of a route to JSON Schema, in which `const` and `enum` stand without a type. */
export function toJsonSchema(schema: Schema): Converted {
  if (!(schema instanceof z.ZodType)) return { schema, named: {} };
  return convert(schema, { override: withoutDefaults, isNullJoined: ({ type }) => type !== 'object' });
}

/** Converts a validation schema of a store to JSON Schema. */
export const toSchema = (checked: z.ZodType): Converted =>
  convert(checked, { override: () => undefined, isNullJoined: () => true });

interface Conversion {
  readonly override: (context: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) => void;
  /** Whether a schema that also permits null says so in its `type`. */
  readonly isNullJoined: (schema: Part) => boolean;
}

function convert(checked: z.ZodType, { override, isNullJoined }: Conversion): Converted {
  const options = { io: 'input', override } as const;
  const { $schema: _, $defs = {}, ...schema } = z.toJSONSchema(checked, options) as Part & { $defs?: Part };
  const tidy = (part: Part): Part => visit(part, isNullJoined) as Part;
  const named = Object.entries($defs).map(([name, part]) => {
    const { id: _id, ...rest } = part as Part;
    return [name, tidy(rest)] as const;
  });
  return { schema: tidy(schema), named: Object.fromEntries(named) };
}

const withoutDefaults: Conversion['override'] = ({ jsonSchema }) => {
  if (jsonSchema.const !== undefined || jsonSchema.enum !== undefined) delete jsonSchema.type;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
};

/** Simplifies a schema: `null` becomes a type, redundant keywords are removed, references point into the document. */
function visit(value: unknown, isNullJoined: Conversion['isNullJoined']): unknown {
  if (Array.isArray(value)) return value.map((member) => visit(member, isNullJoined));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    if (name === 'propertyNames' || (name === 'additionalProperties' && isEmpty(member))) return [];
    if (name === '$ref') return [[name, String(member).replace('#/$defs/', '#/components/schemas/')]];
    return [[name, visit(member, isNullJoined)]];
  });
  const part: Part = Object.fromEntries(entries);
  const [first, second] = (part.anyOf as Part[] | undefined) ?? [];
  const isNullable = second?.type === 'null' && typeof first?.type === 'string';
  return isNullable && isNullJoined(first) ? joinNull(part, first) : part;
}

const isEmpty = (value: unknown): boolean => JSON.stringify(value) === '{}';

function joinNull({ anyOf: _, ...rest }: Part, first: Part): Part {
  const choice = Array.isArray(first.enum) ? { enum: [...first.enum, null] } : {};
  return { ...rest, ...first, type: [first.type, 'null'], ...choice };
}
