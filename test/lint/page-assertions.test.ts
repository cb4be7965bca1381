/** A page is drawn in steps: what a test expects to find there is asked again until it is there. */
import { expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles, textOf } from '../support/docs/files.js';

/** Reads of a page that give at once what is there, finished or not. */
const READINGS: ReadonlySet<string> = new Set([
  'allInnerTexts',
  'allTextContents',
  'count',
  'getAttribute',
  'innerText',
  'inputValue',
  'isChecked',
  'isDisabled',
  'isEnabled',
  'isVisible',
  'textContent',
]);
/** What is not there needs no waiting, and an upper bound may not be waited for. */
const ABSENCES = /\.not\.|\.toBe\((?:0|false)\)|, 0\]\)|\.toBeNull\(\)|\.toBeLessThan\(/;

const nameOf = (node: unknown): string => String((node as Node | undefined)?.value ?? '');

const isCallOf = (node: Node, isName: (name: string) => boolean): boolean => {
  if (node.type !== 'CallExpression') return false;
  const callee = node.callee as Node;
  return isName(nameOf(callee.type === 'MemberExpression' ? callee.property : callee));
};

/** Where a page is read once and expected to be finished. */
function placesOf(file: File): string[] {
  const module = parse(file);
  return nodesOf(module.body)
    .filter(([node, parents]) => {
      if (!isCallOf(node, (name) => READINGS.has(name))) return false;
      const isAsserted = parents.some((parent) => isCallOf(parent, (name) => name === 'expect'));
      const isRepeated = parents.some((parent) =>
        isCallOf(parent, (name) => name === 'eventually' || name === 'until'),
      );
      const statement = parents.findLast(({ type }) => type === 'ExpressionStatement');
      return isAsserted && !isRepeated && statement !== undefined && !ABSENCES.test(textOf(file, statement));
    })
    .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`);
}

test('finds no page that is read once and expected to be finished', () => {
  const files = sourceFiles('test/slow').filter(({ text }) => text.includes('support/browser/'));
  expect(files.length).toBeGreaterThan(30);
  expect(files.flatMap(placesOf)).toEqual([]);
});

test('finds each of them', () => {
  const lines = [
    'expect(await row.count()).toBe(1);',
    'expect(await row.count()).toBe(0);',
    'await eventually(async () => expect(await row.count()).toBe(1));',
    "expect([await name.inputValue()]).toEqual(['x']);",
    'expect(await row.isVisible()).toBe(false);',
    "expect(await name.textContent()).not.toContain('x');",
    'const text = await name.textContent();',
    'expect(await row.count()).toBeLessThan(10);',
    "expect(await row.first().allTextContents()).toEqual(['ä']);",
  ];
  expect(placesOf({ path: 'test/example.test.ts', text: `${lines.join('\n')}\n` })).toEqual(
    [1, 4, 9].map((line) => `test/example.test.ts:${line}`),
  );
});
