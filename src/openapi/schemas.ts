/** Creates JSON Schemas of entities, packets and commands from the validation schemas and the limits. */

import { COMMAND_STATUSES } from '../core/command.js';
import { ERROR_KINDS } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { SEVERITIES } from '../core/rule/severity.js';
import { STORES, type Store } from '../core/stores.js';
import { titleOf } from '../entities/title.js';
import { allOf, type Part, schemaRef, toSchema } from '../platform/http/schema.js';

const ID: Part = { type: 'string', pattern: '^[0-9a-fA-F]{24}$' };
const TIME: Part = { type: 'integer', description: 'Milliseconds since the epoch' };
const TEXT: Part = { type: 'string' };
/** An object with additional fields. */
const OPEN: Part = { type: 'object', additionalProperties: true };

/** Fields that the service sets. Values in a body are ignored (docs/reference/stores.md). */
const COMMON: Part = {
  _id: { ...ID, description: 'The permanent identifier' },
  owner: { ...ID, description: 'The creator' },
  group: { ...ID, description: 'The group to which the entity belongs' },
  branch: { type: 'array', items: ID, description: 'The groups from the root down to `group`' },
  access: { type: 'array', items: ID, description: 'The users with whom the entity is shared' },
  time: { ...TIME, description: 'The time of creation, in milliseconds since the epoch' },
  _at: { ...TIME, description: 'The time of the last change, in milliseconds since the epoch' },
};
const COMMON_ALWAYS = ['_id', 'owner', 'group', 'branch', 'access', 'time'];

const LATEST_NEXT: Part = {
  type: 'string',
  description: 'There are more parameters: `latestAfter` with this text continues after it',
};

/** The last value of each parameter of an object. */
const LATEST_VALUES: Part = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: { value: {}, time: { type: 'integer' } },
    required: ['value', 'time'],
    additionalProperties: false,
  },
  description: 'With `state=latest-of-each`: the last value of each parameter with its time',
};

/** Fields that the service adds, by store; `always` lists the fields that are always present. */
const ADDED: Readonly<Record<string, { fields: Part; always?: readonly string[] }>> = {
  objects: {
    fields: {
      models: { type: 'object', properties: { id: ID }, required: ['id'], description: 'The same as `model`' },
      latest: LATEST_VALUES,
      packetsRemoved: { ...TIME, description: 'When packets of an interval were removed last' },
      wrongClock: {
        type: ['object', 'null'],
        properties: {
          since: { ...TIME, description: 'Since when the clock of the device is wrong' },
          packets: { type: 'integer', description: 'How many packets it sent since then, accurate to a minute' },
          deviceTime: { ...TIME, description: 'What its clock said last' },
        },
        required: ['since', 'packets', 'deviceTime'],
        description: 'That the clock of the device is wrong; `null` when it is right again',
      },
      latestNext: LATEST_NEXT,
      state: allOf(schemaRef('PacketFields'), { description: 'The latest packet with data and current `online`' }),
    },
    always: ['model', 'models'],
  },
  users: { fields: {}, always: ['role'] },
  tokens: {
    fields: {
      user: { ...ID, description: 'The user of the token' },
      issuedAt: TIME,
      expiresAt: TIME,
      lastUsed: { ...TIME, description: 'The time of its last use, accurate to a minute' },
    },
    always: ['scopes', 'user', 'issuedAt', 'expiresAt'],
  },
  sources: {
    fields: { lastUsed: { ...TIME, description: 'When a packet of it was stored last, accurate to a minute' } },
  },
  commands: {
    fields: {
      object: ID,
      command: { ...TEXT, description: 'The name of the command' },
      params: { type: 'object' },
      status: { enum: [...COMMAND_STATUSES] },
      times: {
        type: 'object',
        properties: Object.fromEntries(COMMAND_STATUSES.map((status) => [status, TIME])),
        description: 'The time at which each status was last reached',
      },
      expires: { ...TIME, description: 'The time at which the command expires, in milliseconds since the epoch' },
      network: {
        enum: ['sent', 'queued'],
        description: 'Of a device behind a source: whether its network has passed the command on, or only queued it',
      },
      result: { description: 'The result that the device reported, if any' },
    },
  },
  rules: { fields: { disabledReason: { ...TEXT, description: 'Why the rule does not run' } } },
  schedules: {
    fields: {
      due: { ...TIME, type: ['integer', 'null'], description: 'When it is sent next; `null` while it is not active' },
      asked: {
        ...TIME,
        type: ['integer', 'null'],
        description: 'When somebody asked to have it sent now, until it is; otherwise `null`',
      },
      lastDue: {
        ...TIME,
        type: ['integer', 'null'],
        description: 'When it was due last by its times; it is due again an hour later at the earliest',
      },
      lastRun: {
        type: ['object', 'null'],
        properties: {
          time: TIME,
          due: { ...TIME, description: 'When it was due' },
          late: { type: 'boolean' },
          status: { enum: ['sending', 'sent', 'failed'] },
          mails: { type: 'integer', description: 'How many mails it sends' },
          error: { type: ['string', 'null'] },
        },
        required: ['time', 'due', 'late', 'status', 'mails', 'error'],
        description: 'What became of it last; `null` before the first time',
      },
    },
    always: ['due', 'asked', 'lastDue', 'lastRun'],
  },
  alarms: {
    fields: {
      rule: ID,
      object: ID,
      name: TEXT,
      severity: { enum: [...SEVERITIES] },
      status: { enum: ['raised', 'cleared'] },
      raised: TIME,
      cleared: { ...TIME, type: ['integer', 'null'] },
      clearReason: { ...TEXT, description: 'Why it was cleared' },
      clearedBy: { ...OPEN, description: 'Who has cleared it: `{user, note}`' },
      acknowledged: { ...OPEN, type: ['object', 'null'], description: '`{time, user, note}`' },
      values: { ...OPEN, description: 'What the condition read' },
      position: { ...OPEN, type: ['object', 'null'] },
      packet: { type: ['string', 'null'], description: 'The packet that completed it' },
      why: { type: 'array', items: OPEN },
      notes: { type: 'array', items: OPEN },
      suppressedBy: { ...ID, description: 'The gateway because of which nobody is told' },
      reminders: { type: 'integer', description: 'How often those who were notified were reminded' },
      notified: { type: 'array', items: OPEN, description: 'Whom it was told: `{user, channel, step, time, error}`' },
    },
  },
  notes: {
    fields: {
      object: ID,
      time: { ...TIME, description: 'The moment that it is about, or the beginning of an interval' },
      to: { ...TIME, type: ['integer', 'null'], description: 'The end of the interval, if it is about one' },
      text: TEXT,
      author: { ...TEXT, description: 'The login of who wrote it' },
      created: TIME,
    },
  },
  audit: {
    fields: {
      owner: { type: 'null' },
      action: TEXT,
      user: { ...ID, type: ['string', 'null'], description: 'The user, if known' },
      login: { type: ['string', 'null'] },
      address: TEXT,
      method: TEXT,
      path: TEXT,
      entity: { type: ['string', 'null'], description: 'The affected entity' },
      fields: { type: ['array', 'null'], items: TEXT, description: 'The names of the changed fields' },
      before: {
        ...OPEN,
        description:
          'The changed values before the change, nested as in the entity: none that is secret, long ones cut',
      },
      after: { ...OPEN, description: 'The same after it' },
      requestId: TEXT,
      count: { type: 'integer', description: 'The number of identical events within half a second' },
    },
  },
};

/** Fields that clients can write but not read. */
const SECRET = new Set(['users.password', 'users.disabled', 'tokens.expiresIn']);

/** All schemas of the document by name. `XFields` describes the answers to requests with `only`. */
export function createSchemas(): Record<string, Part> {
  const stores = [...STORES.values()].map(schemasOf);
  return Object.assign({}, ...stores, schemasOfAdded(), PACKETS, { Error: errorSchema() });
}

function schemasOf(store: Store): Record<string, Part> {
  const title = titleOf(store.name);
  const { schema, named } = toSchema(store.schema);
  const given = schema.properties as Record<string, Part>;
  const { fields = {}, always = [] } = ADDED[store.name] ?? {};
  const readable = Object.fromEntries(Object.entries(given).filter(([name]) => !SECRET.has(`${store.name}.${name}`)));
  const builtIn = store.builtIn
    ? { _builtin: { const: true, description: 'Everyone can read it, nobody can change it' } }
    : {};
  const required = [...COMMON_ALWAYS, ...((schema.required as string[] | undefined) ?? []), ...always];
  const whole = [...required, ...Object.keys(store.defaults)].filter((name) => !SECRET.has(`${store.name}.${name}`));
  const changeable = Object.fromEntries(Object.entries(given).filter(([name]) => !store.fixed.includes(name)));
  const group = { ...ID, type: ['string', 'null'], description: 'The caller’s group, or one below it' };
  return {
    ...named,
    [`${title}Fields`]: {
      type: 'object',
      properties: { ...COMMON, ...readable, ...fields, ...builtIn },
      required: ['_id'],
    },
    ...(!store.readOnly && {
      [title]: { ...allOf(schemaRef(`${title}Fields`)), required: [...new Set(whole)] },
      [`${title}New`]: { ...schema, properties: { ...given, group } },
      [`${title}Change`]: { type: 'object', properties: changeable },
    }),
  };
}

/** Entities of custom stores: the common fields, and fields according to the store's own schema. */
function schemasOfAdded(): Record<string, Part> {
  return {
    EntityFields: { ...OPEN, properties: COMMON, required: ['_id'] },
    Entity: { ...allOf(schemaRef('EntityFields')), required: COMMON_ALWAYS },
    EntityNew: { ...OPEN, properties: { group: ID }, description: 'As the `schema` of the store describes' },
    EntityChange: { type: 'object', description: 'The changed entity must match the `schema` of the store' },
  };
}

const PACKET: Part = {
  _id: ID,
  _ts: { type: 'integer', description: 'The time at which Vigil received the packet, in microseconds since the epoch' },
  time: { ...TIME, description: 'The time of the device, or else of Vigil, in milliseconds since the epoch' },
  online: { type: 'boolean' },
  _oid: { ...ID, description: 'The object' },
  id: { ...TEXT, description: 'The object’s own id' },
  _gid: { ...ID, description: 'The object’s group' },
};
const DEVICE_TIME: Part = {
  description: 'What the clock of the device said, if that cannot be right; otherwise a parameter like any other',
};

const PACKETS: Record<string, Part> = {
  PacketFields: {
    ...OPEN,
    properties: { ...PACKET, deviceTime: DEVICE_TIME },
    required: ['_id'],
    description: 'All other fields are parameters, whether the model of the object declares them or not',
  },
  Packet: { ...allOf(schemaRef('PacketFields')), required: Object.keys(PACKET) },
  Message: {
    ...OPEN,
    properties: {
      _id: {
        type: ['string', 'number', 'null'],
        description:
          'Lets the device send the packet again safely: 24 hexadecimal digits; other text or a number is kept as `messageId`, and only the same packet is one that is sent again',
      },
      time: {
        type: ['number', 'string', 'null'],
        description:
          'A number, or text of digits: seconds (9 or 10 digits), milliseconds (12 or 13), microseconds (16) or nanoseconds (19) since ' +
          'the epoch, also with a fraction; 1 to 8 and 11 digits and negative numbers are of a clock that was reset; ' +
          'or text such as ISO 8601, RFC 3339 or RFC 1123, UTC without a zone. ' +
          'A time before 2000, or further ahead than `PACKET_TIME_AHEAD` and the model permit, is kept as `deviceTime`, and the packet has the time of Vigil',
      },
      online: { type: ['boolean', 'number', 'string', 'null'], default: true, description: 'Also 1, 0, "ON" or "off"' },
    },
    description: `A message of a device. All other fields are parameters. At most ${LIMITS.packetBytes} bytes of JSON`,
  },
};

function errorSchema(): Part {
  const kinds = Object.entries(ERROR_KINDS);
  return {
    type: 'object',
    properties: {
      success: { const: false },
      code: { enum: kinds.map(([status]) => status), description: 'The status as text' },
      message: { enum: kinds.map(([, { message }]) => message) },
      tags: { type: 'array', items: { enum: [...new Set(kinds.flatMap(([, { tags }]) => tags))] } },
      helper: {
        type: 'object',
        properties: { message: TEXT },
        required: ['message'],
        description: 'An explanation for people',
      },
      count: { type: 'integer', minimum: 0, description: 'Of an array of packets: how many are stored' },
      refused: {
        type: 'array',
        items: schemaRef('Refusal'),
        description: 'Of an array of packets: those that cannot be stored',
      },
    },
    required: ['success', 'code', 'message', 'tags'],
    additionalProperties: false,
  };
}
