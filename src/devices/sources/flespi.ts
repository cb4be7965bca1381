/**
 * HTTP streams of flespi (https://flespi.com/kb/messages-basic-information-units): a list of messages with dotted names, which are members
 * here, and times in seconds with a fraction. The stream sends a batch again until it is answered 200.
 */
import { badRequest } from '../../core/errors.js';
import { isObject } from '../../core/json.js';
import {
  type Item,
  identifiers,
  parseBody,
  present,
  readEach,
  type SourceKind,
  toList,
  toTime,
  without,
} from './kind.js';

const TAKEN: ReadonlySet<string> = new Set(['ident', 'timestamp', 'time', 'id', 'online']);

const isMessage = (value: unknown): boolean =>
  isObject(value) && typeof value.ident === 'string' && ('timestamp' in value || 'protocol.id' in value);

const matches = (body: unknown): boolean => (Array.isArray(body) ? isMessage(body[0]) : isMessage(body));

function readMessage(message: unknown): Item {
  if (!isObject(message)) throw badRequest('expected a message with "ident"');
  const time = toTime(message.timestamp ?? message['server.timestamp']);
  const devices = identifiers(message.ident, message['device.name']);
  return { devices, packet: { ...without(message, TAKEN), ...present({ time }) } };
}

export const flespi: SourceKind = {
  read(request) {
    const body = parseBody(request);
    if (!Array.isArray(body) && !matches(body))
      throw badRequest('the body: expected a list of messages, as flespi sends it');
    return { items: readEach(toList(body), readMessage), answer: null, resends: true, sharesQueue: true };
  },
  matches,
};
