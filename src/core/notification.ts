/** How a user wants to be told: the channels, the quiet hours, and what is worth it. Pure. */
import { z } from 'zod';
import { badRequest } from './errors.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { parseSchedule, type Schedule } from './rule/schedule.js';
import { SEVERITIES, type Severity } from './rule/severity.js';

export const CHANNEL_KINDS = ['email', 'ntfy', 'telegram'] as const;
export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** One way to reach a user. `address` is secret: it may be all that protects a topic. */
export interface Channel {
  readonly kind: ChannelKind;
  readonly address: string;
}

/** A channel as requests and answers have it. */
export const CHANNEL = z
  .union([
    z.strictObject({ email: z.string() }),
    z.strictObject({ ntfy: z.string().describe('The address of a topic') }),
    z.strictObject({ telegram: z.string().describe('The number of a chat, or the `@name` of a channel') }),
  ])
  .meta({ id: 'Channel', description: 'A way to reach a user' });

/** As a user writes it: `{"email": "ada@example.com"}`. */
export const toChannelFields = ({ kind, address }: Channel): JsonObject => ({ [kind]: address });

/** The channels without those that are named twice. Throws a 400 that names the place. */
export function parseChannels(value: Json, name = 'channels'): readonly Channel[] {
  if (value === null) return [];
  if (!Array.isArray(value) || value.length > LIMITS.channelsPerUser) {
    throw badRequest(`${name}: expected a list of at most ${LIMITS.channelsPerUser} channels`);
  }
  const channels = value.map((one, index) => parseChannel(one, `${name}[${index}]`));
  return channels.filter((one, index) => channels.findIndex((other) => isSame(one, other)) === index);
}

const isSame = (one: Channel, other: Channel): boolean => one.kind === other.kind && one.address === other.address;

const EXPECTED = '{"email": "<address>"}, {"ntfy": "https://<server>/<topic>"} or {"telegram": "<chat>"}';

/** Throws a 400 that names the place. */
export function parseChannel(value: Json, place: string): Channel {
  if (!isObject(value)) throw badRequest(`${place}: expected ${EXPECTED}`);
  const [kind, other] = Object.keys(value);
  if (kind === undefined || other !== undefined) throw badRequest(`${place}: expected ${EXPECTED}`);
  if (!(CHANNEL_KINDS as readonly string[]).includes(kind)) {
    throw badRequest(`${place}.${kind}: not known; expected ${EXPECTED}`);
  }
  return { kind: kind as ChannelKind, address: PARSERS[kind as ChannelKind](value[kind] as Json, `${place}.${kind}`) };
}

const EMAIL = z.email().max(LIMITS.nameCharacters);
/** The number of a chat, negative for a group, or the public name of a channel. */
const CHAT = /^(?:-?\d{1,32}|@\w{1,63})$/;

const PARSERS: Readonly<Record<ChannelKind, (value: Json, place: string) => string>> = {
  email(value, place) {
    const { data } = EMAIL.safeParse(value);
    if (data === undefined) throw badRequest(`${place}: expected an email address`);
    return data;
  },
  ntfy(value, place) {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
    const isWeb = url !== null && /^https?:$/.test(url.protocol) && url.pathname.length > 1;
    if (!isWeb) throw badRequest(`${place}: expected the address of a topic, such as https://ntfy.sh/my-topic`);
    if (url.href.length > LIMITS.channelUrlCharacters) {
      throw badRequest(`${place}: at most ${LIMITS.channelUrlCharacters} characters`);
    }
    if (url.username !== '' || url.password !== '') {
      throw badRequest(`${place}: may not contain a user name or a password; use an access token as ?auth=`);
    }
    url.hash = '';
    return url.href;
  },
  telegram(value, place) {
    const chat = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
    if (typeof chat === 'string' && chat.length <= LIMITS.chatCharacters && CHAT.test(chat)) return chat;
    throw badRequest(`${place}: expected the number of a chat, or the @name of a channel`);
  },
};

/** The hours in which messages below `critical` wait. Throws a 400 that names the place. */
export function parseQuiet(value: Json, name = 'quiet'): Schedule | null {
  if (value === null) return null;
  if (!isObject(value)) throw badRequest(`${name}: expected an object with from, to and tz`);
  const other = Object.keys(value).find((one) => !['from', 'to', 'tz'].includes(one));
  if (other !== undefined) throw badRequest(`${name}.${other}: not known; expected from, to and tz`);
  for (const one of ['from', 'to']) {
    if ((value[one] ?? null) === null) throw badRequest(`${name}.${one}: required`);
  }
  const schedule = parseSchedule(value, name);
  if (schedule !== null && schedule.fromMs === schedule.toMs) {
    throw badRequest(`${name}.to: expected another time than that of from`);
  }
  return schedule;
}

/** Throws a 400 that names the field. */
export function parseMinSeverity(value: Json, name = 'minSeverity'): Severity {
  if (value === null) return 'info';
  if ((SEVERITIES as readonly Json[]).includes(value)) return value as Severity;
  throw badRequest(`${name}: expected ${SEVERITIES.join(', ')}`);
}
