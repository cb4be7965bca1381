/** The titles of tests begin with a verb, so that each can be read after its subject. */
import { basename } from 'node:path';
import { expect, test } from '@jest/globals';
import { type File, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';

const tests = sourceFiles('test').filter(({ path }) => path.endsWith('.test.ts'));

/** Words that begin a sentence with its subject or a condition: a verb cannot follow as the first word. */
const NO_VERB =
  /^(?:an?|the|of|th(?:at|ose|is|ese)|its?|wh(?:at|o|om|ose|oever|atever|ere|en|ile)|one|two|both|some|any|many|more|most|few|and|but|or|nor|by|at|in|on|to|for|from|into|under|over|with(?:in|out)?|after|before|beside|no|none|nobody|nothing|every|each|all|so|as|also|again|only|just|if|how|there|their|other|another)\b|^[^a-z]/;

interface Title {
  readonly text: string;
  readonly source: string;
}

/** Whether a callee is `test`, `test.skip`, `test.each(…)` and the like. */
function isTest(callee: Node): boolean {
  if (callee.type === 'Identifier') return callee.value === 'test';
  if (callee.type === 'MemberExpression') return isTest(callee.object as Node);
  if (callee.type === 'CallExpression') return isTest(callee.callee as Node);
  return false;
}

function titlesOf(file: File): Title[] {
  return nodesOf(parse(file).body).flatMap(([{ type, callee, arguments: given }]) => {
    const first = (given as { expression: Node }[] | undefined)?.[0]?.expression;
    if (type !== 'CallExpression' || first === undefined || !isTest(callee as Node)) return [];
    const [quasi] = (first.quasis ?? []) as { raw: string }[];
    const text = first.type === 'StringLiteral' ? String(first.value) : quasi?.raw;
    return text === undefined ? [] : [{ text, source: basename(file.path) }];
  });
}

test('finds a verb at the beginning of every title', () => {
  const titles = tests.flatMap(titlesOf);
  expect(titles.length).toBeGreaterThan(500);
  expect(titles.filter(({ text }) => NO_VERB.test(text)).map(({ text, source }) => `${source}: ${text}`)).toEqual([]);
});
