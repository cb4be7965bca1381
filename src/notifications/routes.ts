/** The test of the own channels: the other settings of notifications are fields of the own account. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { conflict } from '../core/errors.js';
import { parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { CHANNEL, type Channel, parseChannel, toChannelFields } from '../core/notification.js';
import type { FairQueue } from '../platform/fair-queue.js';
import { callerOf } from '../platform/http/caller.js';
import { sendEntity } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, SUCCESS } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { Channels } from './channels.js';
import type { Message } from './message.js';
import { loadPerson } from './person.js';

export interface NotificationDeps {
  readonly database: Database;
  readonly sendMessage: Channels['send'];
  /** Throws 429, 503. */
  readonly countTests: (userId: string, count: number) => Promise<void>;
  readonly webhookTestQueue: FairQueue;
  readonly publicUrl: string | null;
}

const testChannels = defineRoute({
  method: 'POST',
  path: '/api/v1/account/channels/test',
  name: 'testChannels',
  tag: 'account',
  summary: 'Sends a test message over the own channels, and says what became of it',
  docs: 'Sends a test message over each [own channel](notifications.md#channels), or over `{channel}` alone; says what became of it',
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
          }),
        ),
      }),
    ),
  },
  errors: [403, 409],
  handle: (deps: NotificationDeps) => async (req, res) => {
    const { userId } = callerOf(res);
    const { channel = null } = parseObject(req.body ?? {});
    const channels = channel === null ? await findOwn(deps, userId) : [parseChannel(channel, 'channel')];
    if (channels.length === 0) throw conflict('you have no channels: PATCH /account {"channels": […]} sets them');
    await deps.countTests(userId, channels.length);
    const tested = await Promise.all(
      channels.map((one) => deps.webhookTestQueue.run(userId, () => sendTest(deps, one))),
    );
    res.locals.action = 'channels tested';
    res.locals.entityId = userId;
    sendEntity(res, { channels: tested });
  },
});

async function findOwn({ database }: NotificationDeps, userId: string): Promise<readonly Channel[]> {
  return (await loadPerson(database, userId))?.channels ?? [];
}

async function sendTest({ sendMessage, publicUrl }: NotificationDeps, channel: Channel) {
  const message: Message = {
    id: randomUUID(),
    title: 'Test from Vigil',
    text: 'You receive notifications of alarms here.',
    link: publicUrl,
    severity: 'info',
  };
  const { detail } = await sendMessage(channel, message, new AbortController().signal);
  return { channel: toChannelFields(channel), sent: detail === null, error: detail };
}

export const NOTIFICATION_ROUTES = [testChannels];
