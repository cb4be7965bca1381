/** The parts of the OpenAPI document that a declared route gives: parameters, bodies, answers, errors. */
import type { ErrorStatus } from '../core/errors.js';
import type { Parameter, Route, RouteAnswer, RouteBody } from '../platform/http/route.js';
import { type Part, type Schema, toJsonSchema } from '../platform/http/schema.js';

/** What operations refer to by name. */
export interface Components {
  readonly schemas: Record<string, Part>;
  readonly parameters: Record<string, Part>;
}

/** Of JSON. */
export const json = (schema: Part): Part => ({ 'application/json': { schema } });

export function toRequestBody(
  { schema, isRequired = false, isForm, raw, example }: RouteBody,
  { schemas }: Components,
): Part {
  const content = { schema: toSchema(schema, schemas), example };
  const form = isForm ? { 'application/x-www-form-urlencoded': content } : {};
  const any = raw === undefined ? {} : { '*/*': { schema: {}, example } };
  return { required: isRequired, content: { 'application/json': content, ...form, ...any } };
}

/** Of a successful answer, by media type. */
export function contentOf({ schema, content = {} }: RouteAnswer, { schemas }: Components): Part {
  const others = Object.entries(content).map(([type, one]) => [type, { schema: toSchema(one, schemas) }]);
  return { ...(schema && json(toSchema(schema, schemas))), ...Object.fromEntries(others) };
}

const ERRORS_OF_AUTH = { none: [], caller: [401, 429], permission: [401, 403, 429] } as const;

/** Errors in addition to those of every route. */
export function errorsOf({ auth, body, errors = [] }: Route<never>): ErrorStatus[] {
  const ofBody: readonly ErrorStatus[] = body === undefined ? [] : [413, 415];
  return [...ERRORS_OF_AUTH[auth], ...ofBody, ...errors];
}

/** Adds the parameters to the components, and returns references to them. */
export function addParameters(
  { parameters }: Components,
  place: 'path' | 'query',
  declared: Readonly<Record<string, Parameter>>,
): Part[] {
  return Object.entries(declared).map(([name, parameter]) => {
    const component = parameter.component ?? name;
    const added = toParameter(name, place, parameter);
    const present = parameters[component] ?? added;
    if (JSON.stringify(present) !== JSON.stringify(added)) throw new Error(`two parameters are called ${component}`);
    parameters[component] = added;
    return { $ref: `#/components/parameters/${component}` };
  });
}

function toSchema(schema: Schema, schemas: Record<string, Part>): Part {
  const converted = toJsonSchema(schema);
  Object.assign(schemas, converted.named);
  return converted.schema;
}

function toParameter(
  name: string,
  place: 'path' | 'query',
  { schema, example, description, isRequired }: Parameter,
): Part {
  const converted = toJsonSchema(schema).schema;
  const isList = converted.type === 'array';
  return {
    name,
    in: place,
    ...((place === 'path' || isRequired) && { required: true }),
    example,
    schema: converted,
    ...((isList || converted.type === 'object') && { style: 'form', explode: !isList }),
    description,
  };
}
