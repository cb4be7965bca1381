/** Creates the AsyncAPI document: the events of live clients, the messages of webhooks, and the topics of devices. */
import { OUTCOME } from '../commands/routes.js';
import { LIMITS } from '../core/limits.js';
import { type Part, schemaRef, toJsonSchema } from '../platform/http/schema.js';
import { createSchemas } from './schemas.js';
import { createTopics } from './topics.js';
import { createWebhookMessages } from './webhook-messages.js';

const TEXT: Part = { type: 'string' };
const POSITION: Part = {
  ...TEXT,
  description: 'Opaque. A client that connects with it as `since` receives the events after it',
};

/** The second argument of an event. */
const DETAIL: Part = { type: 'object', properties: { position: POSITION }, required: ['position'] };

interface Message {
  readonly name: string;
  readonly summary: string;
  readonly payload: Part;
}

const COMMAND: Part = {
  type: 'object',
  properties: { id: { ...TEXT, description: 'The `_id` of the object' }, command: schemaRef('CommandFields') },
  required: ['id', 'command'],
};

const ALARM: Part = {
  type: 'object',
  properties: { id: { ...TEXT, description: 'The `_id` of the object' }, alarm: schemaRef('AlarmFields') },
  required: ['id', 'alarm'],
};

/** The events by name, each with its first argument: docs/reference/live-events.md. */
export const EVENTS: readonly Message[] = [
  { name: 'object-packet', summary: 'A packet was stored', payload: schemaRef('Packet') },
  {
    name: 'object-update',
    summary: 'Fields of an object changed; a new packet is not a change',
    payload: {
      type: 'object',
      properties: {
        id: { ...TEXT, description: 'The `_id` of the object' },
        before: { type: 'object', description: 'The changed top-level fields with their values before' },
        after: { type: 'object', description: 'The same fields with their values after' },
      },
      required: ['id', 'before', 'after'],
    },
  },
  {
    name: 'object-created',
    summary: 'An object was created, or became visible to the client',
    payload: {
      type: 'object',
      properties: {
        id: { ...TEXT, description: 'The `_id` of the object' },
        object: { ...schemaRef('ControlObjectFields'), description: 'The object, without `state`' },
      },
      required: ['id', 'object'],
    },
  },
  {
    name: 'object-removed',
    summary: 'An object was removed, or is no longer visible to the client',
    payload: {
      type: 'object',
      properties: { id: { ...TEXT, description: 'The `_id` of the object' } },
      required: ['id'],
    },
  },
  { name: 'object-command-req', summary: 'A command was created', payload: COMMAND },
  { name: 'object-command-res', summary: 'A command became `done`', payload: COMMAND },
  { name: 'object-command-err', summary: 'A command became `failed` or `expired`', payload: COMMAND },
  { name: 'alarm-raised', summary: 'An alarm was raised', payload: ALARM },
  {
    name: 'alarm-updated',
    summary: 'An alarm was acknowledged or noted, has escalated, or its severity changed',
    payload: ALARM,
  },
  { name: 'alarm-cleared', summary: 'An alarm was cleared', payload: ALARM },
];

const GAP: Message = {
  name: 'gap',
  summary:
    'The events after the position of the client are no longer available, or its user was moved to another group: read over HTTP what is needed',
  payload: {
    type: 'object',
    properties: { reason: { enum: ['unknown position', 'history gone', 'user moved'] }, from: POSITION },
    required: ['reason', 'from'],
  },
};

const LIVE: Message = {
  name: 'live',
  summary: 'All missed events were sent; only for clients that connect with `auth: {live: true}`',
  payload: { type: 'object', properties: { position: POSITION }, required: ['position'] },
};

const SUBSCRIBE: Message = {
  name: 'subscribe',
  summary: 'Restricts the events of the client; a later call replaces an earlier one',
  payload: {
    type: 'object',
    properties: {
      objects: {
        type: ['array', 'null'],
        items: TEXT,
        maxItems: LIMITS.subscribedObjects,
        description: '`_id`s or own ids of objects; all objects by default',
      },
      groups: {
        type: ['array', 'null'],
        items: TEXT,
        maxItems: LIMITS.subscribedGroups,
        description: '`_id`s of groups: only objects in them or below them; not with `objects`',
      },
      events: {
        type: ['array', 'null'],
        items: { enum: EVENTS.map(({ name }) => name) },
        description: 'The names of events; all by default',
      },
    },
  },
};

const SUBSCRIBED: Message = {
  name: 'subscribed',
  summary: 'The acknowledgement of `subscribe`',
  payload: {
    type: 'object',
    properties: {
      success: { type: 'boolean' },
      objects: {
        type: 'array',
        items: TEXT,
        description: 'The `_id`s of the objects that were found and are permitted',
      },
      groups: { type: 'array', items: TEXT, description: 'The `_id`s of the groups that are permitted' },
      position: { ...POSITION, description: 'All events up to this position were sent before' },
      code: TEXT,
      message: TEXT,
    },
    required: ['success'],
  },
};

const toServers = (basePath: string): Part => ({
  web: {
    host: '{host}',
    ...(basePath !== '' && { pathname: basePath }),
    protocol: 'http',
    variables: { host: { default: '127.0.0.1:8080' } },
  },
  devices: {
    host: '{host}',
    protocol: 'mqtt',
    protocolVersion: '3.1.1',
    variables: { host: { default: '127.0.0.1:1883' } },
    description:
      'The client id is the `_id` or the own id of the object; each device has its own topics. Behind the ' +
      'operator’s own broker, each topic begins with `objects/<id>/`.',
  },
});

const SECURITY_SCHEMES: Part = {
  device: {
    type: 'userPassword',
    description: 'The user name and password of `config.auth`, or a token as the password',
  },
  session: { type: 'httpApiKey', in: 'cookie', name: 'sid' },
  token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
};

export function createAsyncApi(basePath = ''): Part {
  const messages = [...EVENTS, GAP, LIVE, SUBSCRIBE, SUBSCRIBED];
  const { Packet, PacketFields, AlarmFields, CommandFields, ControlObjectFields, Message: Sent } = createSchemas();
  const { Outcome } = toJsonSchema(OUTCOME).named;
  const topics = createTopics();
  const webhooks = createWebhookMessages(EVENTS);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Vigil',
      version: '1',
      description: 'Live events, webhooks and MQTT topics. The repository describes them in docs/reference.',
    },
    defaultContentType: 'application/json',
    servers: { ...toServers(basePath), ...webhooks.servers },
    channels: {
      sockets: sockets(messages),
      stream: stream([...EVENTS, GAP]),
      ...webhooks.channels,
      ...topics.channels,
    },
    operations: {
      ...topics.operations,
      ...webhooks.operations,
      stream: operation('stream', 'send', [...EVENTS, GAP], 'The same events as over Socket.IO'),
      tell: operation('sockets', 'send', [...EVENTS, GAP, LIVE], 'Each event goes to those who see the object'),
      narrow: {
        ...operation('sockets', 'receive', [SUBSCRIBE], 'Sets the events that the client receives'),
        reply: { channel: channelRef('sockets'), messages: [messageRef('sockets', SUBSCRIBED)] },
      },
    },
    components: {
      schemas: { Packet, PacketFields, AlarmFields, CommandFields, ControlObjectFields, Message: Sent, Outcome },
      messages: {
        ...Object.fromEntries(messages.map((message) => [message.name, toMessage(message)])),
        ...topics.messages,
        ...webhooks.messages,
      },
      securitySchemes: { ...SECURITY_SCHEMES, ...webhooks.securitySchemes },
    },
  };
}

function sockets(messages: readonly Message[]): Part {
  return {
    address: '/socket.io/',
    title: 'Socket.IO',
    description:
      'Protocols EIO=4 and EIO=3, WebSocket and long polling. An event’s first argument is the payload here, the second ' +
      'one `{position}`. The headers of the handshake, or `auth: {token}`, authenticate the caller.',
    servers: [{ $ref: '#/servers/web' }],
    messages: refsOf(messages),
    bindings: { ws: { method: 'GET', query: { type: 'object', properties: SUBSCRIPTION_PARAMETERS } } },
  };
}

/** The stream of server-sent events. */
function stream(messages: readonly Message[]): Part {
  return {
    address: '/api/v1/events',
    title: 'Server-sent events',
    description:
      'With `Accept: text/event-stream`: `event:` is the name, `data:` the payload here, `id:` the position. Otherwise a ' +
      'page of them, as the OpenAPI document has it.',
    servers: [{ $ref: '#/servers/web' }],
    messages: refsOf(messages),
  };
}

/** The query parameters of the stream. */
const SUBSCRIPTION_PARAMETERS: Part = {
  since: POSITION,
  objects: { ...TEXT, description: '`_id`s or own ids, separated by commas' },
  groups: { ...TEXT, description: '`_id`s of groups, separated by commas' },
  events: { ...TEXT, description: 'Names, separated by commas' },
};

const refsOf = (messages: readonly Message[]): Part =>
  Object.fromEntries(messages.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }]));

function toMessage({ name, summary, payload }: Message): Part {
  const isEvent = EVENTS.some((event) => event.name === name);
  return { name, title: name, summary, payload, ...(isEvent && { headers: DETAIL }) };
}

const channelRef = (channel: string): Part => ({ $ref: `#/channels/${channel}` });
const messageRef = (channel: string, { name }: Message): Part => ({ $ref: `#/channels/${channel}/messages/${name}` });

function operation(channel: string, action: 'send' | 'receive', messages: readonly Message[], summary: string): Part {
  return {
    action,
    channel: channelRef(channel),
    summary,
    messages: messages.map((message) => messageRef(channel, message)),
    security: [{ $ref: '#/components/securitySchemes/session' }, { $ref: '#/components/securitySchemes/token' }],
  };
}
