/** The parameters of paths and queries. Operations refer to them by name. */
import { FIRST_USER_ID } from '../core/builtin.js';
import { LIMITS } from '../core/limits.js';
import { LIST_QUERY } from '../platform/http/parameters.js';
import type { Part } from '../platform/http/schema.js';
import { toParameter } from './route-operation.js';

const ID = '^[0-9a-fA-F]{24}$';
const PATH: Readonly<Record<string, Part>> = {
  store: {
    example: 'drivers',
    schema: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,63}$' },
    description: 'A store of your own',
  },
  id: {
    example: 'truck-7',
    schema: { type: 'string' },
    description: 'The `_id` of the entity; for an object also its own `id`',
  },
  user: { example: FIRST_USER_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the user' },
};

/** docs/reference/http-api.md, "List parameters". */
export const LIST_PARAMETERS: Readonly<Record<string, Part>> = Object.fromEntries(
  Object.entries(LIST_QUERY).map(([name, parameter]) => [name, toParameter(name, 'query', parameter)]),
);

/** The additional parameter of lists of objects. */
const LATEST_PARAMETER: Readonly<Record<string, Part>> = {
  stateKind: {
    name: 'state',
    example: 'latest-of-each',
    schema: { enum: ['latest-of-each'] },
    description: `In place of \`state\`, each object has \`latest\`: the last value of each parameter with its time. At most ${LIMITS.latestObjects} objects; not with \`meta\``,
  },
};

/** Parameters of single operations. */
const OTHERS: Readonly<Record<string, Part>> = {
  group: {
    example: 'mine',
    schema: { enum: ['mine'] },
    description:
      'Creates the entity in the caller’s own group and ignores the group in the body, for entities exported from another installation',
  },
};

/** Every parameter by name, for the components of the document. */
export function createParameters(): Record<string, Part> {
  const placed = (table: Readonly<Record<string, Part>>, place: object) =>
    Object.entries(table).map(([name, part]) => [name, { name, ...place, ...part }]);
  return Object.fromEntries([
    ...placed(PATH, { in: 'path', required: true }),
    ...placed({ ...LIST_PARAMETERS, ...LATEST_PARAMETER, ...OTHERS }, { in: 'query' }),
  ]);
}

/** The names of the parameters in a path like `/api/v1/objects/{id}`. */
export function pathParametersOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

export const parameterRef = (name: string): Part => ({ $ref: `#/components/parameters/${name}` });
