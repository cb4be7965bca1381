/** Reads a mail as its reader sees it: the decoded subject, the text, and the attached file. */
import type { Mail } from './mail-server.js';

export interface ReadMail {
  readonly subject: string;
  readonly messageId: string;
  readonly text: string;
  readonly file: { readonly name: string; readonly text: string } | null;
}

export function readMail({ text }: Mail): ReadMail {
  const { headers, body } = toPart(text);
  const boundary = /boundary="?([^";\r\n]+)/.exec(headers['content-type'] ?? '')?.[1];
  const parts = boundary === undefined ? [{ headers, body }] : body.split(`--${boundary}`).slice(1, -1).map(toPart);
  const [shown, file] = parts.map((part) => ({ ...part, text: decode(part.headers, part.body) }));
  const name = /filename="?([^";\r\n]+)/.exec(file?.headers['content-disposition'] ?? '')?.[1];
  return {
    subject: decodeWords(headers.subject ?? ''),
    messageId: headers['message-id'] ?? '',
    text: (shown?.text ?? '').replaceAll('\r\n', '\n').trim(),
    file: file === undefined ? null : { name: String(name), text: file.text },
  };
}

interface Part {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function toPart(text: string): Part {
  const [head = '', ...rest] = text.replace(/^\r\n/, '').split('\r\n\r\n');
  const lines = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const [name = '', ...value] = line.split(': ');
    return [name.toLowerCase(), value.join(': ')];
  });
  return { headers: Object.fromEntries(headers), body: rest.join('\r\n\r\n') };
}

function decode(headers: Part['headers'], body: string): string {
  const encoding = headers['content-transfer-encoding'];
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
  return encoding === 'quoted-printable' ? fromQuoted(body.replace(/=\r\n/g, '')) : body;
}

const fromQuoted = (text: string): string =>
  Buffer.from(
    text.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString();

const decodeWords = (text: string): string =>
  text
    .replace(/\?= =\?/g, '?==?')
    .replace(/=\?UTF-8\?([BQ])\?([^?]*)\?=/gi, (_, kind: string, word: string) =>
      kind.toUpperCase() === 'B' ? Buffer.from(word, 'base64').toString() : fromQuoted(word.replaceAll('_', ' ')),
    );
