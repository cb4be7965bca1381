/** The MQTT topics of devices in the AsyncAPI document. */
import { type Part, schemaRef } from '../platform/http/schema.js';

const TEXT: Part = { type: 'string' };

interface Topic {
  readonly address: string;
  readonly title: string;
  readonly description: string;
  /** `receive`: devices publish to the topic. */
  readonly action: 'send' | 'receive';
  readonly parameters?: Readonly<Record<string, string>>;
  readonly payload: Part;
}

const TOPICS: Readonly<Record<string, Topic>> = {
  state: {
    address: 'base/state',
    title: 'Packets',
    description:
      'One packet, or an array of packets. With QoS 1 and 2, Vigil acknowledges a message after storing it, and stores a ' +
      'repeated message once. The `reference` of a parameter in the model can name other topics.',
    action: 'receive',
    payload: { anyOf: [schemaRef('Message'), { type: 'array', items: schemaRef('Message') }] },
  },
  parameter: {
    address: 'base/state/{parameter}',
    title: 'A packet with one parameter',
    description: 'JSON, or plain text',
    action: 'receive',
    parameters: { parameter: 'The name of the parameter' },
    payload: { description: 'Its value' },
  },
  result: {
    address: 'base/commands/{commandId}/result',
    title: 'Results of commands',
    description: 'Ends the command',
    action: 'receive',
    parameters: { commandId: 'The `_id` of the command' },
    payload: schemaRef('Outcome'),
  },
  command: {
    address: 'base/commands/{command}',
    title: 'Commands',
    description:
      'With QoS 1, its acknowledgement makes the command `delivered`. If the action in the model has a `topic` or a ' +
      '`payload` among its `params`, these are used.',
    action: 'send',
    parameters: { command: 'The name of the command' },
    payload: {
      type: 'object',
      properties: {
        _id: { ...TEXT, description: 'The topic of the result contains it' },
        command: TEXT,
        params: { type: 'object' },
      },
      required: ['_id', 'command', 'params'],
    },
  },
};

const security = [{ $ref: '#/components/securitySchemes/device' }];

/** The channels, messages and operations, by name. */
export function createTopics(): { channels: Part; messages: Part; operations: Part } {
  const entries = Object.entries(TOPICS);
  const each = (make: (name: string, topic: Topic) => Part): Part =>
    Object.fromEntries(entries.map(([name, topic]) => [name, make(name, topic)]));
  return {
    channels: each((name, { address, title, description, parameters = {} }) => ({
      address,
      title,
      description,
      servers: [{ $ref: '#/servers/devices' }],
      parameters: Object.fromEntries(Object.entries(parameters).map(([key, about]) => [key, { description: about }])),
      messages: { [name]: { $ref: `#/components/messages/${name}` } },
    })),
    messages: each((name, { title, payload }) => ({ name, title, payload })),
    operations: each((name, { action, title }) => ({
      action,
      summary: title,
      security,
      channel: { $ref: `#/channels/${name}` },
      messages: [{ $ref: `#/channels/${name}/messages/${name}` }],
      bindings: { mqtt: { qos: 1, retain: false } },
    })),
  };
}
