/** JSON Schemas of the stores that administrators add: compiled once, and never able to stall the process. */
import { Ajv, type ErrorObject, type FuncKeywordDefinition } from 'ajv';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';
import { badRequest } from '../errors.js';
import { isObject, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';

// Patterns of a schema run in time linear to the text (RE2), whatever they are.
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(pattern);
    return { test: (text: string) => compiled.matcher(text).find() };
  },
  { code: 'linear' },
);

/** A check that throws a 400 naming the field; or, for a schema that is none, a 400 that says why. */
export function compileSchema(schema: JsonObject): (fields: JsonObject) => void {
  if (JSON.stringify(schema).length > LIMITS.schemaBytes)
    throw badRequest(`schema: larger than ${LIMITS.schemaBytes} bytes`);
  checkCost(schema);
  const validate = compile(schema);
  return (fields) => {
    if (validate(fields)) return;
    const [fault] = validate.errors ?? [];
    throw badRequest(fault === undefined ? 'the entity does not fit its schema' : describe(fault));
  };
}

// What checking an entity costs grows with the parts of the schema, most of all with its patterns.
function checkCost(schema: JsonObject): void {
  let [parts, patterns] = [0, 0];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    parts++;
    for (const [key, part] of Object.entries(value)) {
      if (key === 'pattern') patterns++;
      if (key === 'patternProperties' && isObject(part)) patterns += Object.keys(part).length;
      visit(part);
    }
  };
  visit(schema);
  if (parts > LIMITS.schemaParts) throw badRequest(`schema: more than ${LIMITS.schemaParts} parts`);
  if (patterns > LIMITS.schemaPatterns) throw badRequest(`schema: more than ${LIMITS.schemaPatterns} patterns`);
}

// Ajv compares each item with each other one.
const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: false,
  error: { message: 'must not have two equal items' },
  validate: (wanted: boolean, items: unknown[]) =>
    !wanted || new Set(items.map((item) => JSON.stringify(sorted(item)))).size === items.length,
};

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [name, sorted(member)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function compile(schema: JsonObject) {
  try {
    // A new compiler each time: nothing of one schema stays behind for another.
    const ajv = new Ajv({ strict: false, validateSchema: true, logger: false, code: { regExp: linearRegExp } });
    ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems);
    (addFormats as unknown as (ajv: Ajv, options: object) => void)(ajv, { mode: 'fast' });
    const validate = ajv.compile(schema);
    // Such a check answers with a promise: everything would seem to fit, and a misfit would end the process.
    if ('$async' in validate) throw new Error('$async is not taken');
    return validate;
  } catch (error) {
    throw badRequest(`schema: ${error instanceof Error ? error.message.slice(0, 500) : 'not a JSON Schema'}`);
  }
}

function describe({ instancePath, message, params }: ErrorObject): string {
  const missing = (params as { missingProperty?: string }).missingProperty;
  const field = [...instancePath.split('/').slice(1), ...(missing === undefined ? [] : [missing])].join('.');
  return missing === undefined ? `${field || 'the entity'}: ${message}` : `${field}: required`;
}
