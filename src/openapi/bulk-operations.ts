/** The operations that change or remove the entities of a list. */
import type { ErrorStatus } from '../core/errors.js';
import { type Part, schemaRef } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

const ID: Part = { type: 'string' };
const COUNT: Part = { type: 'integer', minimum: 0 };
const QUERY = ['where', 'search', 'from', 'to', 'begin', 'end', 'sortBy', 'offset', 'limit', 'after', 'dryRun'];
const ERRORS: readonly ErrorStatus[] = [401, 403, 404, 429];

const RESULT: Part = {
  type: 'object',
  properties: {
    success: { const: true },
    count: { ...COUNT, description: 'How many entities were selected' },
    done: { ...COUNT, description: 'How many of these were changed or removed; 0 with `dryRun`' },
    more: { type: 'boolean', description: 'Whether further entities match, beyond the limit' },
    last: { anyOf: [ID, { type: 'null' }], description: 'The `_id` of the last one, for `after`' },
    failed: { type: 'array', items: { type: 'object', properties: { _id: ID, code: ID }, required: ['_id', 'code'] } },
  },
  required: ['success', 'count', 'done', 'more', 'last', 'failed'],
  additionalProperties: false,
};

/** For the store whose entities have this path and title. */
export function bulkOperationsOf({ path, tag, title }: { path: string; tag: string; title: string }): Operation[] {
  const answer = { description: 'What was done', content: { 'application/json': RESULT } };
  return [
    {
      method: 'patch',
      path,
      id: `changeMany${title}`,
      tag,
      query: QUERY,
      summary: 'Merges the body into each entity that the filters select; at least one filter is required',
      body: { 'application/json': schemaRef(`${title}Change`) },
      isBodyRequired: true,
      answer,
      errors: [...ERRORS, 413, 415],
    },
    {
      method: 'delete',
      path,
      id: `removeMany${title}`,
      tag,
      query: QUERY,
      summary: 'Removes each entity that the filters select; at least one filter is required',
      answer,
      errors: ERRORS,
    },
  ];
}
