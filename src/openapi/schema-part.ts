/** Building blocks of the documents: JSON Schemas (2020-12) and references to shared components. */
import { z } from 'zod';

/** A JSON Schema, or any other part of a document. */
export type Part = { readonly [name: string]: unknown };

export const schemaRef = (name: string): Part => ({ $ref: `#/components/schemas/${name}` });

export const allOf = (...deps: readonly Part[]): Part => ({ allOf: deps });

/** The response of a list: an array, or its summary with `meta`. */
export const listOf = (fields: string): Part => ({
  anyOf: [
    { type: 'array', items: schemaRef(fields) },
    {
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 0 },
        first: { anyOf: [schemaRef(fields), { type: 'null' }] },
        last: { anyOf: [schemaRef(fields), { type: 'null' }] },
      },
      required: ['count', 'first', 'last'],
      additionalProperties: false,
      title: 'With `meta`',
    },
  ],
});

/** Converts a validation schema to JSON Schema, and collects the schemas that it references by name. */
export function toSchema(checked: z.ZodType): { schema: Part; named: Record<string, Part> } {
  const { $schema: _, $defs = {}, ...schema } = z.toJSONSchema(checked, { io: 'input' }) as Part & { $defs?: Part };
  const named = Object.entries($defs).map(([name, part]) => {
    const { id: _id, ...rest } = part as Part;
    return [name, tidy(rest)] as const;
  });
  return { schema: tidy(schema), named: Object.fromEntries(named) };
}

/** Simplifies a schema: `null` becomes a type, redundant keywords are removed, references point into the document. */
function tidy(part: Part): Part {
  return visit(part) as Part;
}

function visit(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(visit);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    if (name === 'propertyNames' || (name === 'additionalProperties' && isEmpty(member))) return [];
    if (name === '$ref') return [[name, String(member).replace('#/$defs/', '#/components/schemas/')]];
    return [[name, visit(member)]];
  });
  return withNull(Object.fromEntries(entries));
}

const isEmpty = (value: unknown): boolean => JSON.stringify(value) === '{}';

function withNull(part: Part): Part {
  const [first, second] = (part.anyOf as Part[] | undefined) ?? [];
  if (second?.type !== 'null' || typeof first?.type !== 'string') return part;
  const { anyOf: _, ...rest } = part;
  const choice = Array.isArray(first.enum) ? { enum: [...first.enum, null] } : {};
  return { ...rest, ...first, type: [first.type, 'null'], ...choice };
}
