/** Reads the text files that commands are given. */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { PlainError } from '../program.js';

/** The text of a file. Another encoding than UTF-8 would change letters: it is refused. */
export async function readText(file: string): Promise<string> {
  const bytes = await readFile(file);
  if (!isUtf8(bytes)) throw new PlainError(`${file} is not UTF-8: save it in this encoding`);
  return bytes.toString('utf8');
}
