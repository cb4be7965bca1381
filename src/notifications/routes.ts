/** The test and the confirmation of the own channels: the other settings of notifications are fields of the own account. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Caller } from '../core/access.js';
import { badRequest, conflict } from '../core/errors.js';
import { parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import {
  assertHasChannels,
  CHANNEL,
  type Channel,
  isOfOperator,
  isSame,
  needsConfirmation,
  type OwnChannel,
  parseChannel,
  toChannelFields,
} from '../core/notification.js';
import type { FairQueue } from '../platform/fair-queue.js';
import { callerOf } from '../platform/http/caller.js';
import { sendEntity } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, SUCCESS } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { Channels } from './channels.js';
import { checkCode, createCode, storeConfirmed, toCodeMessage } from './codes.js';
import type { Message } from './message.js';
import { loadPerson } from './person.js';
import type { TestLimits } from './test-limits.js';

export interface NotificationDeps {
  readonly database: Database;
  readonly now: () => number;
  readonly channels: Pick<Channels, 'kinds' | 'check' | 'pushKey'>;
  readonly sendMessage: Channels['send'];
  readonly testLimits: TestLimits;
  readonly webhookTestQueue: FairQueue;
  readonly publicUrl: string | null;
}

const testChannels = defineRoute({
  method: 'POST',
  path: '/api/v1/account/channels/test',
  name: 'testChannels',
  tag: 'account',
  summary: 'Sends a test message over the own channels, or the code that confirms one',
  docs: 'Sends a test message over each [own channel](notifications.md#channels), or over `{channel}` alone, and to one that is not [confirmed](notifications.md#confirmation) a code; says what became of it',
  auth: 'caller',
  limit: 'request',
  body: {
    schema: z.object({ channel: CHANNEL }).partial(),
    example: {},
    limitBytes: LIMITS.accountBodyBytes,
  },
  answer: {
    description: 'What became of each message',
    schema: every(
      SUCCESS,
      z.object({
        channels: z.array(
          z.object({
            channel: CHANNEL,
            sent: z.boolean().describe('Whether the receiver took the message'),
            error: z.string().nullable().describe('Why it did not'),
            confirmed: z.boolean().describe('Whether it was a test; if not, it was a code'),
          }),
        ),
      }),
    ),
  },
  errors: [403, 409],
  handle: (deps: NotificationDeps) => async (req, res) => {
    const caller = callerOf(res);
    assertHasChannels(caller);
    const { channel = null } = parseObject(req.body ?? {});
    const own = await findOwn(deps, caller.userId);
    const channels = channel === null ? own : [toOwn(caller, own, parseChannel(channel, 'channel'))];
    if (channels.length === 0) throw conflict('you have no channels: PATCH /account {"channels": […]} sets them');
    await deps.testLimits.countTests(caller.userId, channels.length);
    const tested = await Promise.all(
      channels.map((one) => deps.webhookTestQueue.run(caller.userId, () => sendTest(deps, caller.userId, one))),
    );
    res.locals.action = 'channels tested';
    res.locals.entityId = caller.userId;
    sendEntity(res, { channels: tested });
  },
});

const confirmChannel = defineRoute({
  method: 'POST',
  path: '/api/v1/account/channels/confirm',
  name: 'confirmChannel',
  tag: 'account',
  summary: 'Confirms the address of an own channel with the code that was sent to it',
  docs: '`{channel, code}`: [confirms](notifications.md#confirmation) the address of an own channel',
  auth: 'caller',
  limit: 'request',
  body: {
    schema: z.object({ channel: CHANNEL, code: z.string() }),
    example: { channel: { email: 'ada@example.com' }, code: 'XK7Q2-M9TRC' },
    isRequired: true,
    limitBytes: LIMITS.accountBodyBytes,
  },
  answer: {
    description: 'The channel, which is confirmed',
    schema: every(SUCCESS, z.object({ channel: CHANNEL, confirmed: z.literal(true) })),
  },
  errors: [403, 409],
  handle: (deps: NotificationDeps) => async (req, res) => {
    const caller = callerOf(res);
    assertHasChannels(caller);
    const { channel: given = null, code = '' } = parseObject(req.body ?? {});
    const channel = parseChannel(given, 'channel');
    if (code === '' || code === null) throw badRequest('code: required');
    if (typeof code !== 'string') throw badRequest('code: expected a text');
    const known = (await findOwn(deps, caller.userId)).find((one) => isSame(one, channel));
    if (known === undefined) throw notYours();
    if (!known.isConfirmed) await confirm(deps, caller.userId, known, code);
    res.locals.action = 'channel confirmed';
    res.locals.entityId = caller.userId;
    sendEntity(res, { channel: toChannelFields(channel), confirmed: true });
  },
});

const notYours = (): Error => conflict('channel: not one of yours: PATCH /account {"channels": […]} sets them');

async function findOwn({ database }: NotificationDeps, userId: string): Promise<readonly OwnChannel[]> {
  return (await loadPerson(database, userId))?.channels ?? [];
}

/** A channel may be tested before it is set. */
function toOwn(caller: Caller, own: readonly OwnChannel[], channel: Channel): OwnChannel {
  const isConfirmed = isOfOperator(caller) || !needsConfirmation(channel);
  return own.find((one) => isSame(one, channel)) ?? { ...channel, isConfirmed };
}

async function confirm({ database, now }: NotificationDeps, userId: string, channel: Channel, code: string) {
  await checkCode(database, userId, channel, { code, nowMs: now() });
  if (!(await storeConfirmed(database, userId, channel))) throw notYours();
}

async function sendTest(deps: NotificationDeps, userId: string, channel: OwnChannel) {
  const result = { channel: toChannelFields(channel), confirmed: channel.isConfirmed };
  // Whether the operator has set it up is said without a code.
  if (!channel.isConfirmed && deps.channels.kinds.includes(channel.kind)) {
    const refused = await deps.testLimits.countCode(userId, channel);
    if (refused !== null) return { ...result, sent: false, error: refused };
    const code = await createCode(deps.database, userId, channel, deps.now());
    return { ...result, ...(await send(deps, channel, toCodeMessage(code, deps.publicUrl))) };
  }
  const message: Message = {
    id: randomUUID(),
    title: 'Test from Vigil',
    text: 'You receive notifications of alarms here.',
    link: deps.publicUrl,
    severity: 'info',
  };
  return { ...result, ...(await send(deps, channel, message)) };
}

async function send({ sendMessage }: NotificationDeps, channel: Channel, message: Message) {
  const { detail } = await sendMessage(channel, message, new AbortController().signal);
  return { sent: detail === null, error: detail };
}

export const NOTIFICATION_ROUTES = [testChannels, confirmChannel];
