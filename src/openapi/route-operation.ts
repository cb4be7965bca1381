/** Describes declared routes as operations of the OpenAPI document, with the parameters and schemas that they name. */
import type { ErrorStatus } from '../core/errors.js';
import type { Parameter, Route, RouteAnswer, RouteBody } from '../platform/http/route.js';
import { type Part, type Schema, toJsonSchema } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

/** What operations refer to by name. */
export interface Components {
  readonly schemas: Record<string, Part>;
  readonly parameters: Record<string, Part>;
}

const METHODS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const;

export function toOperation(route: Route<never>, components: Components): Operation {
  const { method, path, name, tag, summary, params = {}, query = {}, body, answer, auth } = route;
  const toSchema = (schema: Schema): Part => {
    const converted = toJsonSchema(schema);
    Object.assign(components.schemas, converted.named);
    return converted.schema;
  };
  addParameters(components, 'path', params);
  return {
    method: METHODS[method],
    path: path.replace(/:(\w+)/g, '{$1}'),
    id: name,
    tag,
    summary,
    isOpen: auth === 'none',
    query: addParameters(components, 'query', query),
    ...(body && { body: bodyOf(body, toSchema), isBodyRequired: body.isRequired ?? false, example: body.example }),
    answer: { description: answer.description, content: contentOf(answer, toSchema) },
    headers: answer.headers ?? [],
    errors: errorsOf(route),
  };
}

const ERRORS_OF_AUTH = { none: [], caller: [401, 429], permission: [401, 403, 429] } as const;

const json = (schema: Part): Record<string, Part> => ({ 'application/json': schema });

function bodyOf({ schema, isForm }: RouteBody, toSchema: (schema: Schema) => Part): Record<string, Part> {
  const converted = toSchema(schema);
  return { ...json(converted), ...(isForm && { 'application/x-www-form-urlencoded': converted }) };
}

function contentOf({ schema, content = {} }: RouteAnswer, toSchema: (schema: Schema) => Part): Record<string, Part> {
  const others = Object.entries(content).map(([type, one]) => [type, toSchema(one)]);
  return { ...(schema && json(toSchema(schema))), ...Object.fromEntries(others) };
}

function errorsOf({ auth, body, errors = [] }: Route<never>): ErrorStatus[] {
  const ofAuth: readonly ErrorStatus[] = ERRORS_OF_AUTH[auth];
  const ofBody: readonly ErrorStatus[] = body === undefined ? [] : [413, 415];
  return [...ofAuth, ...ofBody, ...errors];
}

/** Adds the parameters to the components, and returns their names there. */
function addParameters(
  { parameters }: Components,
  place: 'path' | 'query',
  declared: Readonly<Record<string, Parameter>>,
): string[] {
  for (const [name, parameter] of Object.entries(declared)) {
    parameters[parameter.component ?? name] = toParameter(name, place, parameter);
  }
  return Object.entries(declared).map(([name, { component }]) => component ?? name);
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
