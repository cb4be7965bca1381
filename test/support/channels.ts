/** The codes that confirm channels, as their messages have them, and the confirmation itself. */
import type { Person } from './callers.js';
import type { MailServer } from './mail-server.js';

/** Empty where the message has none. */
export const codeIn = (text = ''): string => /\b[0-9A-Z]{5}-[0-9A-Z]{5}\b/.exec(text)?.[0] ?? '';

/** Of the latest message to the address. Throws where none has a code. */
export function lastCode({ mails }: MailServer, address: string): string {
  const code = codeIn(mails.findLast(({ to }) => to.includes(address))?.text);
  if (code === '') throw new Error(`no code was sent to ${address}`);
  return code;
}

/** Confirms a mail address that the person has set, and forgets the mail with the code. */
export async function confirmAddress({ call }: Person, mail: MailServer, email: string): Promise<void> {
  await call('POST', 'account/channels/test', { channel: { email } });
  const code = lastCode(mail, email);
  const { status, text } = await call('POST', 'account/channels/confirm', { channel: { email }, code });
  if (status !== 200) throw new Error(`confirming ${email}: ${status} ${text}`);
  mail.mails.length = 0;
}
