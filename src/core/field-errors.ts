/** What is wrong with a field, in the words of clients: the messages of zod name types of TypeScript. Pure. */
import type { z } from 'zod';

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'an object',
  record: 'an object',
};

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

/** The message for an issue of zod; undefined for zod's own. A message of the schema's own goes before both. */
export function explainIssue(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${KINDS[issue.expected] ?? issue.expected}`;
    case 'too_small':
      if (issue.minimum === 1 && issue.origin !== 'number' && issue.origin !== 'int') return 'may not be empty';
      return `expected ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unitOf(issue.origin)}`;
    case 'too_big':
      return `expected ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unitOf(issue.origin)}`;
    case 'invalid_format':
      return issue.format === 'email' ? 'expected an email address' : undefined;
    case 'invalid_union':
      return Array.isArray(issue.options) ? `expected one of ${issue.options.join(', ')}` : undefined;
    default:
      return undefined;
  }
}

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' items' : '';
}
