/** OpenAPI operation that explains the permissions of a user. */

import { allOf, type Part, schemaRef } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

const TEXT: Part = { type: 'string' };
const CREDENTIALS: Part = { type: ['array', 'null'], items: TEXT };

const ENTITY: Part = {
  type: 'object',
  properties: {
    store: TEXT,
    _id: TEXT,
    reasons: {
      type: 'array',
      items: { enum: ['group', 'owner', 'shared', 'built-in'] },
      description:
        'Why the user sees the entity: its branch contains the group of the user, the user is its owner, it is shared with ' +
        'the user, or everyone sees it. Each one suffices; without any, the user does not see it',
    },
  },
  required: ['store', '_id', 'reasons'],
  additionalProperties: false,
};

const PERMISSIONS: Part = allOf(schemaRef('Success'), {
  type: 'object',
  properties: {
    user: TEXT,
    login: TEXT,
    group: TEXT,
    active: { type: 'boolean' },
    role: {
      anyOf: [{ type: 'object', properties: { _id: TEXT, name: TEXT }, required: ['_id'] }, { type: 'null' }],
      description: '`null` if the user has no role, or if the caller does not see it',
    },
    credentials: {
      ...CREDENTIALS,
      description: 'The lines of the role, with the object of the user in place of `:object`; `null` if `role` is',
    },
    method: TEXT,
    path: TEXT,
    status: {
      enum: [200, 401, 403, 404],
      description:
        'What the rules of permissions say: 401 if the user is not active, 403 if no line of the role permits the request, 404 if the ' +
        'user does not see the entity, otherwise 200. The request may still be refused for another reason',
    },
    credential: { type: ['string', 'null'], description: 'The first line of the role that permits the request' },
    entity: { anyOf: [ENTITY, { type: 'null' }], description: 'The entity that the path names' },
  },
  required: ['user', 'login', 'group', 'active', 'role', 'credentials'],
});

export const PERMISSION_OPERATION: Operation = {
  method: 'get',
  path: '/api/v1/users/{id}/permissions',
  id: 'explainPermissions',
  tag: 'users',
  summary: 'What a user may do, and why',
  query: ['permissionMethod', 'permissionPath'],
  answer: {
    description: 'The permissions of the user; with `method` and `path`, also whether they permit that request',
    content: { 'application/json': PERMISSIONS },
  },
  errors: [401, 403, 404, 429],
};
