/** The channels that the operator has set up, and the sending of one message over one of them. */
import { CHANNEL_KINDS, type Channel, type ChannelKind } from '../core/notification.js';
import type { Network } from '../webhooks/address-policy.js';
import { checkReceiver } from '../webhooks/addresses.js';
import type { Resolve } from '../webhooks/names.js';
import { createSender } from '../webhooks/request.js';
import { createMailer, type MailSettings } from './mail.js';
import type { Attempt, Message } from './message.js';
import { sendToChat, sendToTopic, type TelegramSettings } from './push.js';

export interface ChannelSettings {
  readonly mail: MailSettings | null;
  readonly telegram: TelegramSettings | null;
}

export interface Channels {
  /** What messages can be sent over. */
  readonly kinds: readonly ChannelKind[];
  /** Throws a 400 that names the channel where nothing would be sent to its address. */
  check(channels: readonly Channel[], name: string): Promise<void>;
  /** Never throws. */
  send(channel: Channel, message: Message, signal: AbortSignal): Promise<Attempt>;
  close(): void;
}

const MISSING: Readonly<Record<ChannelKind, string>> = {
  email: 'this installation sends no mail: its operator has not set SMTP_URL',
  ntfy: '',
  telegram: 'this installation does not use Telegram: its operator has not set TELEGRAM_TOKEN',
};

export function createChannels(
  { mail, telegram }: ChannelSettings,
  { networks, resolve }: { networks: readonly Network[]; resolve: Resolve },
): Channels {
  const mailer = mail === null ? null : createMailer(mail);
  const sender = createSender(networks, resolve);
  const isThere = (kind: ChannelKind): boolean =>
    kind === 'ntfy' || (kind === 'email' ? mailer !== null : telegram !== null);
  return {
    kinds: CHANNEL_KINDS.filter(isThere),
    async check(channels, name) {
      const checked = channels.map(async ({ kind, address }, index) => {
        if (kind === 'ntfy') await checkReceiver(address, networks, resolve, `${name}[${index}].ntfy`);
      });
      await Promise.all(checked);
    },
    async send({ kind, address }, message, signal) {
      if (kind === 'email' && mailer !== null) return mailer.send(address, message, signal);
      if (kind === 'ntfy') return sendToTopic(sender, address, message, signal);
      if (kind === 'telegram' && telegram !== null) {
        return sendToChat(sender, telegram, { address, message, signal });
      }
      return { error: MISSING[kind], detail: MISSING[kind], isFinal: true, retryAfterMs: null };
    },
    close() {
      mailer?.close();
      sender.close();
    },
  };
}
