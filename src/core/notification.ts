/** How a user wants to be told: the channels, the quiet hours, and what is worth it. Pure. */
import { z } from 'zod';
import type { Caller } from './access.js';
import { ROOT_GROUP_ID } from './builtin.js';
import { badRequest, forbidden } from './errors.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { parseSchedule, type Schedule } from './rule/schedule.js';
import { SEVERITIES, type Severity } from './rule/severity.js';

export const CHANNEL_KINDS = ['email', 'ntfy', 'telegram', 'push'] as const;
export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** One way to reach a user. `address` is secret: it may be all that protects a topic. That of a browser is a `PushAddress` as JSON. */
export interface Channel {
  readonly kind: ChannelKind;
  readonly address: string;
}

const EMAIL_FIELDS = { email: z.string() };
const NTFY_FIELDS = { ntfy: z.string().describe('The address of a topic') };
const TELEGRAM_FIELDS = { telegram: z.string().describe('The number of a chat, or the `@name` of a channel') };
const PUSH_KEY = z.string().describe('Base64url');
const PUSH_FIELDS = {
  push: z
    .strictObject({
      endpoint: z.string().describe('Where the browser takes messages'),
      keys: z.strictObject({ p256dh: PUSH_KEY, auth: PUSH_KEY }),
      name: z.string().optional().describe('Tells the browsers of a user apart'),
    })
    .describe("A browser: the JSON of its `PushSubscription`, made with the account's `pushKey`"),
};
const IS_CONFIRMED = z.boolean().describe('Whether anything but a code is sent to it; requests do not change it');
const MAY_SAY = { confirmed: IS_CONFIRMED.optional() };
const SAYS = { confirmed: IS_CONFIRMED };

/** A channel as requests have it: also as answers have it. */
export const CHANNEL = z
  .union([
    z.strictObject({ ...EMAIL_FIELDS, ...MAY_SAY }),
    z.strictObject({ ...NTFY_FIELDS, ...MAY_SAY }),
    z.strictObject({ ...TELEGRAM_FIELDS, ...MAY_SAY }),
    z.strictObject({ ...PUSH_FIELDS, ...MAY_SAY }),
  ])
  .meta({ id: 'Channel', description: 'A way to reach a user' });

/** A channel of a user, as answers have it. */
export const OWN_CHANNEL = z
  .union([
    z.strictObject({ ...EMAIL_FIELDS, ...SAYS }),
    z.strictObject({ ...NTFY_FIELDS, ...SAYS }),
    z.strictObject({ ...TELEGRAM_FIELDS, ...SAYS }),
    z.strictObject({ ...PUSH_FIELDS, ...SAYS }),
  ])
  .meta({ id: 'OwnChannel', description: 'A way to reach the user, and whether its address is confirmed' });

/** As a user writes it: `{"email": "ada@example.com"}`. */
export const toChannelFields = ({ kind, address }: Channel): JsonObject => ({
  [kind]: kind === 'push' ? JSON.parse(address) : address,
});

/**
 * Whether a user has to show that an address is theirs. What is sent to a topic comes from the user's own request to that server, and a
 * browser shows only what is encrypted for it; a mail or a chat comes in the operator's name.
 */
export const needsConfirmation = ({ kind }: Pick<Channel, 'kind'>): boolean => kind === 'email' || kind === 'telegram';

/** Members of the root group belong to the operator, in whose name messages come. */
export const isOfOperator = ({ groupId }: Pick<Caller, 'groupId'>): boolean => groupId === ROOT_GROUP_ID;

export interface OwnChannel extends Channel {
  readonly isConfirmed: boolean;
}

/** The channels of a user, by what is stored of them. */
export function toOwnChannels(channels: Json, confirmed: Json): readonly OwnChannel[] {
  const known = parseChannels(confirmed);
  return parseChannels(channels).map((channel) => {
    const isConfirmed = !needsConfirmation(channel) || known.some((one) => isSame(one, channel));
    return { ...channel, isConfirmed };
  });
}

export const toOwnFields = (channel: OwnChannel): JsonObject => ({
  ...toChannelFields(channel),
  confirmed: channel.isConfirmed,
});

/** Devices are told nothing, and what holds their password may be in foreign hands. Throws 403. */
export function assertHasChannels({ object }: Pick<Caller, 'object'>): void {
  if (object !== null) throw forbidden('the login of a device has no channels');
}

/** The channels without those that are named twice. Throws a 400 that names the place. */
export function parseChannels(value: Json, name = 'channels'): readonly Channel[] {
  if (value === null) return [];
  if (!Array.isArray(value) || value.length > LIMITS.channelsPerUser) {
    throw badRequest(`${name}: expected a list of at most ${LIMITS.channelsPerUser} channels`);
  }
  const channels = value.map((one, index) => parseChannel(one, `${name}[${index}]`));
  return channels.filter((one, index) => channels.findIndex((other) => isSame(one, other)) === index);
}

export const isSame = (one: Channel, other: Channel): boolean =>
  one.kind === other.kind && one.address === other.address;

const EXPECTED =
  '{"email": "<address>"}, {"ntfy": "https://<server>/<topic>"}, {"telegram": "<chat>"} or {"push": <subscription>}';

/** Throws a 400 that names the place. */
export function parseChannel(value: Json, place: string): Channel {
  if (!isObject(value)) throw badRequest(`${place}: expected ${EXPECTED}`);
  const { confirmed, ...address } = value;
  if (confirmed !== undefined && typeof confirmed !== 'boolean') {
    throw badRequest(`${place}.confirmed: expected true or false`);
  }
  const [kind, other] = Object.keys(address);
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
  push: (value, place) => JSON.stringify(parsePushAddress(value, place)),
};

/** A browser, and what encrypts messages for it. RFC 8291. */
export interface PushAddress {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
  readonly name?: string;
}

/** An uncompressed point of P-256, and a secret. */
const PUSH_KEY_BYTES = { p256dh: 65, auth: 16 } as const;

function parsePushAddress(value: Json, place: string): PushAddress {
  if (!isObject(value)) throw badRequest(`${place}: expected the JSON of a browser's PushSubscription`);
  const { endpoint, keys, name = null, expirationTime: _, ...others } = value;
  const [other] = Object.keys(others);
  if (other !== undefined) throw badRequest(`${place}.${other}: not known; expected endpoint, keys and name`);
  const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw badRequest(`${place}.endpoint: expected an address, such as https://push.example/a1b2`);
  }
  if (url.href.length > LIMITS.pushEndpointCharacters) {
    throw badRequest(`${place}.endpoint: at most ${LIMITS.pushEndpointCharacters} characters`);
  }
  if (!isObject(keys ?? null)) throw badRequest(`${place}.keys: expected an object with p256dh and auth`);
  const given = keys as JsonObject;
  for (const [key, bytes] of Object.entries(PUSH_KEY_BYTES)) {
    const text = given[key];
    const isBase64url = typeof text === 'string' && /^[\w-]+$/.test(text);
    if (isBase64url && Buffer.from(text, 'base64url').length === bytes) continue;
    throw badRequest(`${place}.keys.${key}: expected ${bytes} bytes in base64url`);
  }
  if (name !== null && (typeof name !== 'string' || name.length > LIMITS.nameCharacters)) {
    throw badRequest(`${place}.name: expected a text of at most ${LIMITS.nameCharacters} characters`);
  }
  const { p256dh, auth } = given as { p256dh: string; auth: string };
  return { endpoint: url.href, keys: { p256dh, auth }, ...(name !== null && { name }) };
}

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
