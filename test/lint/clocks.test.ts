/** No test waits a fixed time, and none decides by how long something took: a busy machine must not change a verdict. */
import { expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles, textOf } from '../support/docs/files.js';

/** Files that may let time pass, and why. */
const SLEEPS: ReadonlyMap<string, string> = new Map([
  ['test/support/until.ts', 'looks again and again until a condition holds'],
  ['test/support/cutting.ts', 'the same in a browser, where until.ts is not'],
  ['test/http/long-pages.test.ts', 'reads slowly: the pace of a client is what is tested'],
  ['test/http/stalled-readers.test.ts', 'reads slowly: the pace of a client is what is tested'],
  ['test/processing/engine.test.ts', 'a history that is read again and again'],
  ['test/slow/compose/load.ts', 'paces the requests of a client'],
  ['test/slow/failover/listeners.ts', 'paces the reconnections of a client'],
  ['test/slow/failover/writers.ts', 'paces the requests of a client'],
]);
/** Files that may compare times of a clock, and why. */
const DURATIONS: ReadonlyMap<string, string> = new Map([
  ['test/auth/login.test.ts', 'the times of issue that answers state'],
  ['test/auth/sessions.test.ts', 'the time of expiry that a cookie states'],
  ['test/webhooks/queue-limits.test.ts', 'the time of removal that a row states'],
  ['test/unit/webhooks/name-lookup.test.ts', 'the order of lookups'],
  ['test/unit/webhooks/breaker.test.ts', 'pauses by a clock of the test'],
  ['test/unit/model/backoff.test.ts', 'pauses that a pure function returns'],
  ['test/http/stalled-readers.test.ts', 'that a client reads for longer than a limit'],
]);

const tests = sourceFiles('test');

const nameOf = (node: Node | undefined): string => String(node?.value ?? '');

/** The names that let time pass in a file: `sleep`, and those under which it imports the promise of `setTimeout`. */
function sleepersOf(file: File): ReadonlySet<string> {
  const names = nodesOf(parse(file).body).flatMap(([node]) =>
    node.type === 'ImportDeclaration' && nameOf(node.source as Node) === 'node:timers/promises'
      ? (node.specifiers as { local: Node; imported: Node | null }[])
          .filter(({ local, imported }) => nameOf(imported ?? local) !== 'setImmediate')
          .map(({ local }) => nameOf(local))
      : [],
  );
  return new Set(['sleep', ...names]);
}

/** `resolve`, or a function that only calls something without arguments. */
function isResolver({ type, params, body }: Node): boolean {
  if (type === 'Identifier') return true;
  const call = body as Node | undefined;
  return (
    type === 'ArrowFunctionExpression' &&
    (params as unknown[]).length === 0 &&
    call?.type === 'CallExpression' &&
    (call.callee as Node).type === 'Identifier' &&
    (call.arguments as unknown[]).length === 0
  );
}

/** A call that lets time pass: `sleep(…)`, the promise of `setTimeout`, or `setTimeout(resolve, …)`. */
function isSleep({ type, callee, arguments: given }: Node, sleepers: ReadonlySet<string>): boolean {
  if (type !== 'CallExpression') return false;
  const name = nameOf(callee as Node);
  const [first] = given as { expression: Node }[];
  return sleepers.has(name) || (name === 'setTimeout' && first !== undefined && isResolver(first.expression));
}

/** `toBeLessThan` and its like on what a clock says, or on what a name says is a duration. */
function isDurationVerdict({ type, callee }: Node, source: string): boolean {
  if (type !== 'CallExpression' || (callee as Node).type !== 'MemberExpression') return false;
  const name = nameOf((callee as Node).property as Node);
  return (
    /^to(Be(Less|Greater)Than(OrEqual)?|BeCloseTo)$/.test(name) &&
    /performance\.now|Date\.now|\bms\b|(elapsed|duration|latency|took|lasted|since|delay|pause|back)\w*(Ms|_MS)?\b/i.test(
      source,
    )
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

test('finds no fixed wait', () => {
  expect(placesOf((node, _, sleepers) => isSleep(node, sleepers), SLEEPS)).toEqual([]);
});

test('finds no verdict by the clock', () => {
  expect(placesOf((node, file) => isDurationVerdict(node, textOf(file, node)), DURATIONS)).toEqual([]);
});

test('finds both in a file that has them', () => {
  const path = 'test/example.test.ts';
  const text =
    'await sleep(20); setTimeout(done, 20); setTimeout(() => done(), 20); expect(Date.now() - startMs).toBeLessThan(300); expect(lastedMs).toBeLessThan(8_000);';
  const file = { path, text };
  const nodes = nodesOf(parse(file).body).map(([node]) => node);
  expect(nodes.filter((node) => isSleep(node, sleepersOf(file)))).toHaveLength(3);
  expect(nodes.filter((node) => isDurationVerdict(node, textOf(file, node)))).toHaveLength(2);
});
