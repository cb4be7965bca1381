/** JSON Schemas of the stores that administrators add: compiled once, and never able to stall the process. */
import { Ajv, type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';
import { badRequest } from '../errors.js';
import type { JsonObject } from './json.js';
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
  const validate = compile(schema);
  return (fields) => {
    if (validate(fields)) return;
    const [fault] = validate.errors ?? [];
    throw badRequest(fault === undefined ? 'the entity does not fit its schema' : describe(fault));
  };
}

function compile(schema: JsonObject) {
  try {
    // A new compiler each time: nothing of one schema stays behind for another.
    const ajv = new Ajv({ strict: false, validateSchema: true, logger: false, code: { regExp: linearRegExp } });
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
