/** No test waits a fixed time, and none decides by how long something took: a busy machine must not change a verdict. */
import { expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';

/** Files that may do what the rule refuses, and why. */
const SLEEPS: ReadonlyMap<string, string> = new Map([
  ['test/support/until.ts', 'looks again and again until a condition holds'],
]);
const DURATIONS: ReadonlyMap<string, string> = new Map([]);

const tests = sourceFiles('test');

const nameOf = (node: Node | undefined): string => String(node?.value ?? '');

/** The names under which a file imports the promise of `setTimeout`. */
function sleepersOf(file: File): ReadonlySet<string> {
  const names = nodesOf(parse(file).body).flatMap(([node]) =>
    node.type === 'ImportDeclaration' && nameOf(node.source as Node) === 'node:timers/promises'
      ? (node.specifiers as { local: { value: string } }[]).map(({ local }) => local.value)
      : [],
  );
  return new Set(['sleep', ...names.filter((name) => name !== 'setImmediate')]);
}

/** A call that lets time pass: `sleep(…)`, the promise of `setTimeout`, or `setTimeout(resolve, …)`. */
function isSleep({ type, callee, arguments: given }: Node, sleepers: ReadonlySet<string>): boolean {
  if (type !== 'CallExpression') return false;
  const name = nameOf(callee as Node);
  const [first] = given as { expression: Node }[];
  return sleepers.has(name) || (name === 'setTimeout' && first?.expression.type === 'Identifier');
}

/** `toBeLessThan` and its like on what a clock or a name says is a time. */
function isDurationVerdict({ type, callee }: Node, source: string): boolean {
  if (type !== 'CallExpression' || (callee as Node).type !== 'MemberExpression') return false;
  const name = nameOf((callee as Node).property as Node);
  return (
    /^to(Be(Less|Greater)Than(OrEqual)?|BeCloseTo)$/.test(name) &&
    /Ms\b|_MS\b|\bms\b|performance\.now|Date\.now/.test(source)
  );
}

function placesOf(
  isRefused: (node: Node, file: File, sleepers: ReadonlySet<string>) => boolean,
  exceptions: ReadonlyMap<string, string>,
): string[] {
  return tests
    .filter(
      ({ path, text }) => !exceptions.has(path) && /setTimeout|timers\/promises|sleep|toBe(Less|Greater)/.test(text),
    )
    .flatMap((file) => {
      const sleepers = sleepersOf(file);
      return nodesOf(parse(file).body)
        .filter(([node]) => isRefused(node, file, sleepers))
        .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`);
    });
}

/** The text of a node; the parser counts bytes, from 1. */
const sourceOf = ({ text }: File, { span }: Node): string =>
  Buffer.from(text)
    .subarray((span?.start ?? 1) - 1, (span?.end ?? 1) - 1)
    .toString('utf8');

test('finds no fixed wait', () => {
  expect(placesOf((node, _, sleepers) => isSleep(node, sleepers), SLEEPS)).toEqual([]);
});

test('finds no verdict by the clock', () => {
  expect(placesOf((node, file) => isDurationVerdict(node, sourceOf(file, node)), DURATIONS)).toEqual([]);
});

test('finds both in a file that has them', () => {
  const path = 'test/example.test.ts';
  const text = 'await sleep(20); setTimeout(done, 20); expect(Date.now() - startMs).toBeLessThan(300);';
  const file = { path, text };
  const nodes = nodesOf(parse(file).body).map(([node]) => node);
  expect(nodes.filter((node) => isSleep(node, sleepersOf(file)))).toHaveLength(2);
  expect(nodes.filter((node) => isDurationVerdict(node, sourceOf(file, node)))).toHaveLength(1);
});
