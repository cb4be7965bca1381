/** What the simulation runs takes time, timers and randomness only from the clock (src/platform/clock.ts). */
import { expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';

const SIMULATED = [
  'src/packets',
  'src/live',
  'src/commands',
  'src/devices',
  'src/processing',
  'src/webhooks',
  'src/accounts',
  'src/entities',
  'src/platform/mongo/bson',
  'src/platform/mongo/changes',
  'src/platform/mongo/driver',
  'src/platform/fair-queue.ts',
  'src/platform/fairness.ts',
  'src/platform/slices.ts',
  'src/core',
];
const TIMERS: ReadonlySet<unknown> = new Set([
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'randomUUID',
]);
const READINGS: ReadonlySet<string> = new Set(['Date.now', 'performance.now', 'Math.random', 'crypto.randomUUID']);

const nameOf = (node: Node | undefined): string => String(node?.value ?? '');

/** Whether it reads time or randomness, or starts a timer, beside the clock. */
function isRefused(node: Node): boolean {
  if (node.type === 'ImportDeclaration') {
    const imported = (node.specifiers as { local: Node; imported: Node | null }[]).map((one) =>
      nameOf(one.imported ?? one.local),
    );
    return nameOf(node.source as Node).includes('timers') || imported.some((name) => TIMERS.has(name));
  }
  if (node.type === 'MemberExpression') {
    return READINGS.has(`${nameOf(node.object as Node)}.${nameOf(node.property as Node)}`);
  }
  if (node.type === 'NewExpression') {
    return nameOf(node.callee as Node) === 'Date' && ((node.arguments ?? []) as unknown[]).length === 0;
  }
  return node.type === 'CallExpression' && TIMERS.has(nameOf(node.callee as Node));
}

const placesOf = (file: File): string[] =>
  nodesOf(parse(file).body)
    .filter(([node]) => isRefused(node))
    .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`);

test('finds no other source of time and randomness in what is simulated', () => {
  const files = sourceFiles('src').filter(({ path }) =>
    SIMULATED.some((place) => path === place || path.startsWith(`${place}/`)),
  );
  expect(files.length).toBeGreaterThan(150);
  expect(files.flatMap(placesOf)).toEqual([]);
});

test('finds each kind of them', () => {
  const lines = [
    "import { setTimeout as wait } from 'node:timers/promises';",
    "import { randomUUID } from 'node:crypto';",
    'Date.now();',
    'const read = performance.now;',
    'new Date();',
    'new Date(nowMs);',
    'Math.random();',
    'crypto.randomUUID();',
    'setTimeout(run, 5);',
    'setImmediate(run);',
    'clock.setTimeout(run, 5);',
    'clock.now();',
  ];
  expect(placesOf({ path: 'src/example.ts', text: `${lines.join('\n')}\n` })).toEqual(
    [1, 2, 3, 4, 5, 7, 8, 9, 10].map((line) => `src/example.ts:${line}`),
  );
});
