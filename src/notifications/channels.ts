/** The channels that the operator has set up, and the sending of one message over one of them. */
import { badRequest } from '../core/errors.js';
import { CHANNEL_KINDS, type Channel, type ChannelKind, type PushAddress } from '../core/notification.js';
import type { Network } from '../webhooks/address-policy.js';
import { checkReceiver } from '../webhooks/addresses.js';
import type { Resolve } from '../webhooks/names.js';
import { createSender } from '../webhooks/request.js';
import { isPushKey, NO_POINT, sendToBrowser } from './browser-push.js';
import { createMailer, type MailSettings } from './mail.js';
import type { Attempt, Message } from './message.js';
import { sendToChat, sendToTopic, type TelegramSettings } from './push.js';
import type { PushKeys } from './push-keys.js';

export interface ChannelSettings {
  readonly mail: MailSettings | null;
  readonly telegram: TelegramSettings | null;
  readonly publicUrl: string | null;
}

export interface ChannelParts {
  readonly networks: readonly Network[];
  readonly resolve: Resolve;
  readonly pushKeys: PushKeys;
}

export interface Channels {
  /** What messages can be sent over. */
  readonly kinds: readonly ChannelKind[];
  /** Throws a 400 that names the channel where nothing would be sent to its address. */
  check(channels: readonly Channel[], name: string): Promise<void>;
  /** What browsers subscribe with: the `applicationServerKey` of their `PushManager`. Throws 503. */
  pushKey(): Promise<string>;
  /** Never throws. */
  send(channel: Channel, message: Message, signal: AbortSignal): Promise<Attempt>;
  close(): void;
}

const MISSING: Readonly<Record<ChannelKind, string>> = {
  email: 'this installation sends no mail: its operator has not set SMTP_URL',
  ntfy: '',
  telegram: 'this installation does not use Telegram: its operator has not set TELEGRAM_TOKEN',
  push: '',
};

/** Throws a 400 where this installation sends no mail. */
export type AssertSendsMail = () => void;

export const createMailCheck =
  ({ mail }: Pick<ChannelSettings, 'mail'>): AssertSendsMail =>
  () => {
    if (mail === null) throw badRequest(MISSING.email);
  };

/** Whom push services may ask when messages make trouble. RFC 8292, section 2.1. */
function contactOf({ publicUrl, mail }: ChannelSettings): string {
  if (publicUrl?.startsWith('https:')) return publicUrl;
  return `mailto:${/[^\s<>]+@[^\s<>]+/.exec(mail?.from ?? '')?.[0] ?? 'nobody@vigil.invalid'}`;
}

export function createChannels(settings: ChannelSettings, { networks, resolve, pushKeys }: ChannelParts): Channels {
  const { mail, telegram } = settings;
  const contact = contactOf(settings);
  const mailer = mail === null ? null : createMailer(mail);
  const sender = createSender(networks, resolve);
  const isThere = (kind: ChannelKind): boolean =>
    kind === 'email' ? mailer !== null : kind !== 'telegram' || telegram !== null;
  return {
    kinds: CHANNEL_KINDS.filter(isThere),
    async check(channels, name) {
      const checked = channels.map(async ({ kind, address }, index) => {
        if (kind === 'ntfy') await checkReceiver(address, networks, resolve, `${name}[${index}].ntfy`);
        if (kind !== 'push') return;
        const browser: PushAddress = JSON.parse(address);
        if (!isPushKey(browser)) throw badRequest(`${name}[${index}].push.keys.p256dh: ${NO_POINT}`);
        await checkReceiver(browser.endpoint, networks, resolve, `${name}[${index}].push.endpoint`);
      });
      await Promise.all(checked);
    },
    pushKey: async () => (await pushKeys()).publicKey,
    async send({ kind, address }, message, signal) {
      if (kind === 'email' && mailer !== null) return mailer.send(address, message, signal);
      if (kind === 'ntfy') return sendToTopic(sender, address, message, signal);
      if (kind === 'push') return sendToBrowser({ sender, pushKeys, contact }, JSON.parse(address), message, signal);
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
