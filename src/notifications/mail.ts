/** Messages by mail, through the operator's server. Plain text: nothing in it is markup. */
import { createTransport } from 'nodemailer';
import { LIMITS } from '../core/limits.js';
import { type Attempt, type Message, SENT } from './message.js';

export interface MailSettings {
  /** `smtps://user:password@mail.example:465`. */
  readonly url: string;
  readonly from: string;
}

export interface Mailer {
  send(address: string, message: Message, signal: AbortSignal): Promise<Attempt>;
  close(): void;
}

export function createMailer({ url, from }: MailSettings): Mailer {
  const transport = createTransport({
    url,
    pool: true,
    maxConnections: LIMITS.mailConnections,
    connectionTimeout: LIMITS.mailConnectMs,
    greetingTimeout: LIMITS.mailConnectMs,
    dnsTimeout: LIMITS.mailConnectMs,
    socketTimeout: LIMITS.mailAnswerMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const host = /@([^\s@<>]+)>?$/.exec(from)?.[1] ?? 'vigil';
  return {
    async send(address, { id, title, text, link, severity, file }, signal) {
      try {
        const sending = transport.sendMail({
          from,
          to: { name: '', address },
          subject: title,
          text: link === null ? text : `${text}\n\n${link}\n`,
          messageId: `<${id}@${host}>`,
          priority: severity === 'critical' ? 'high' : 'normal',
          ...(file && { attachments: [{ filename: file.name, content: file.content, contentType: 'text/csv' }] }),
          headers: { 'Auto-Submitted': 'auto-generated', 'Idempotency-Key': id },
        });
        await untilAborted(sending, signal);
        return SENT;
      } catch (error) {
        return toFailure(error);
      }
    },
    close: () => transport.close(),
  };
}

/** The library ends no message that is under way: it may be delivered nevertheless. */
function untilAborted(sending: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    sending.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** What the server answered is shown to the user of the channel; where it is, is the operator's business. */
function toFailure(error: unknown): Attempt {
  const { responseCode, response, command } = error as {
    responseCode?: number;
    response?: string;
    command?: string;
  };
  // Refused logins and greetings are mended by the operator; a refused address stays so.
  const isOfAddress = command === 'RCPT TO' || command === 'DATA';
  if (responseCode === undefined) {
    const text = 'the mail server cannot be reached';
    return { error: text, detail: text, isFinal: false, retryAfterMs: null };
  }
  const text = `the mail server answered ${responseCode}`;
  const detail = isOfAddress ? `the mail server answered: ${String(response ?? responseCode).slice(0, 300)}` : text;
  return { error: text, detail, isFinal: isOfAddress && responseCode >= 500, retryAfterMs: null };
}
