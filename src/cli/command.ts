/** The interface of a command of `vigil`. */
import type { ParseArgsConfig } from 'node:util';
import { createClient, type VigilClient } from '../client/client.js';
import { parseTypedValue } from '../core/exact-json.js';
import { UsageError } from '../program.js';
import { checkNames } from './field-names.js';
import type { Output } from './output.js';

export type Options = NonNullable<ParseArgsConfig['options']>;
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** The context of a running command. */
export interface Session {
  readonly url: string;
  /** Null without a login. */
  readonly token: string | null;
  readonly client: VigilClient;
  readonly output: Output;
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  readonly name: string;
  /** The arguments, as the help shows them. */
  readonly usage: string;
  readonly summary: string;
  /** One line for each option. */
  readonly help?: string;
  readonly options?: Options;
  readonly needsLogin: boolean;
  /** The minimum and maximum number of positional arguments. */
  readonly arguments: readonly [number, number];
  run(session: Session, values: Values, words: readonly string[]): Promise<void>;
}

/** A client that says when it repeats a request; `attempts` is 4 by default. */
export function openClient(
  { url, token, output }: Pick<Session, 'url' | 'token' | 'output'>,
  attempts?: number,
): VigilClient {
  return createClient({
    url,
    token: token ?? undefined,
    attempts,
    onRetry: ({ message }, waitMs) => output.say(`${message}; trying again in ${(waitMs / 1_000).toFixed(1)} s`),
  });
}

/** The value of an option that occurs at most once. */
export const textOf = (values: Values, name: string): string | undefined => {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
};

/** The values of an option that may be repeated, or contain a list with commas. */
export const listOf = (values: Values, name: string): string[] | undefined => {
  const given = [values[name] ?? []].flat() as string[];
  const parts = given.flatMap((text) => text.split(',')).filter((part) => part !== '');
  return parts.length === 0 ? undefined : parts;
};

/** Parses `name=value` pairs. A value is JSON, or else text; digits are a number only if that does not change them. */
export function parsePairs(words: readonly string[]): Record<string, unknown> {
  const pairs = words.map((word): [string, unknown] => {
    const index = word.indexOf('=');
    if (index <= 0) throw new UsageError(`"${word}" is not of the form name=value`);
    return [word.slice(0, index), parseTypedValue(word.slice(index + 1))];
  });
  for (const [name, value] of pairs) checkNames({ [name]: value });
  return Object.fromEntries(pairs);
}
