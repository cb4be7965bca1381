/** Entities that every installation has from its first start. Everyone may read them, nobody may change them. */
import type { JsonObject } from './json.js';

/** Fixed, so that instances that start at once on an empty database create the same entities. */
export const ROOT_GROUP_ID = '000000000000000000000001';
export const FIRST_USER_ID = '000000000000000000000002';
export const DEFAULT_MODEL_ID = '000000000000000000000010';
export const ADMINISTRATOR_ROLE_ID = '000000000000000000000020';
export const OPERATOR_ROLE_ID = '000000000000000000000021';
export const VIEWER_ROLE_ID = '000000000000000000000022';
export const DEVICE_ROLE_ID = '000000000000000000000023';

export const BUILT_IN_ROLES: readonly JsonObject[] = [
  { _id: ADMINISTRATOR_ROLE_ID, name: 'administrator', credentials: ['* /*'] },
  {
    _id: OPERATOR_ROLE_ID,
    name: 'operator',
    credentials: [
      'GET /*',
      'PATCH /objects/*',
      'POST /objects/*/commands/*',
      'POST /objects/*/links',
      'DELETE /objects/*/links/*',
      'POST /objects/*/notes',
      'DELETE /objects/*/notes/*',
      'POST /alarms/acknowledge',
      'POST /alarms/*/acknowledge',
      'POST /alarms/*/clear',
      'POST /alarms/*/notes',
      'POST /views',
      'PATCH /views/*',
      'DELETE /views/*',
    ],
  },
  { _id: VIEWER_ROLE_ID, name: 'viewer', credentials: ['GET /*'] },
  {
    _id: DEVICE_ROLE_ID,
    name: 'device',
    credentials: [
      'GET /objects/:object',
      'POST /objects/:object/packets',
      'GET /objects/:object/commands/*',
      'POST /objects/:object/commands/*/result',
    ],
  },
];

export const BUILT_IN_MODELS: readonly JsonObject[] = [
  { _id: DEFAULT_MODEL_ID, name: 'default', data: { id: 'default', name: 'Default', type: 'subsystem', children: [] } },
];
