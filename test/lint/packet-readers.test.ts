/** Packets are read through src/packets/store/ alone: whoever read their collection beside it would miss how they are stored. */
import { expect, test } from '@jest/globals';
import { type File, linesOf, type Node, nodesOf, parse, sourceFiles } from '../support/docs/files.js';

const STORE = 'src/packets/store/';
/** Who may name the collection, and why. */
const OTHERS: Readonly<Record<string, string>> = {
  'src/packets/ingest.ts': 'inserts packets',
  'src/backup/backup.ts': 'copies every collection as it is stored',
  'src/backup/restore.ts': 'inserts them as they were stored, after their objects',
};
const COLLECTION = 'packets';
/** What only the store exports: the name of the collection, and the keys in it. */
const ITS_OWN: ReadonlySet<string> = new Set(['PACKETS', 'toPacketKey']);
/** The members of commands and stages that name a collection to read. */
const READING: ReadonlySet<string> = new Set(['find', 'aggregate', 'count', 'distinct', 'coll', 'from', 'getMore']);

const nameOf = (node: unknown): string => String((node as { value?: unknown } | null | undefined)?.value ?? '');

/** Whether a literal stands where it names a collection, or the name of one. */
function isName({ type, key, callee }: Node): boolean {
  if (type === 'KeyValueProperty') return READING.has(nameOf(key));
  if (type === 'CallExpression') return nameOf((callee as Node).property) === 'collection';
  return type === 'VariableDeclarator';
}

/** Whether it names the collection of packets, or how packets are stored in it. */
function isRefused(node: Node, parents: readonly Node[]): boolean {
  if (node.type === 'StringLiteral' && node.value === COLLECTION) return isName(parents.at(-1) as Node);
  if (node.type !== 'ImportSpecifier') return false;
  return ITS_OWN.has(nameOf(node.imported ?? node.local));
}

const placesOf = (file: File): string[] =>
  nodesOf(parse(file).body)
    .filter(([node, parents]) => isRefused(node, parents))
    .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`);

const readers = sourceFiles('src').filter(({ path }) => !path.startsWith(STORE));

test('finds nobody else who knows where packets are stored', () => {
  expect(readers.filter(({ path }) => !(path in OTHERS)).flatMap(placesOf)).toEqual([]);
});

test('finds a use of each exception', () => {
  const used = readers.filter((file) => file.path in OTHERS && placesOf(file).length > 0);
  expect(used.map(({ path }) => path).sort()).toEqual(Object.keys(OTHERS).sort());
});

/** Packets of a transaction are no events: they are rows that were in a bucket (src/platform/mongo/changes/decoder.ts). */
const TRANSACTIONS: ReadonlySet<string> = new Set(['startTransaction', 'withTransaction']);

const transactionsIn = (file: File): string[] =>
  nodesOf(parse(file).body)
    .filter(([{ type, value }]) => type === 'Identifier' && TRANSACTIONS.has(String(value)))
    .map(([node]) => `${file.path}:${linesOf(file, node)[0]}`);

test('finds no transaction where new packets are inserted', () => {
  const writers = [...Object.keys(OTHERS), 'src/platform/mongo/driver/retryable-write.ts'];
  const files = sourceFiles('src').filter(({ path }) => writers.includes(path));
  expect(files.length).toBe(writers.length);
  expect(files.flatMap(transactionsIn)).toEqual([]);
  const text = 'await session.withTransaction(() => insert(session));\nsession.startTransaction();\n';
  expect(transactionsIn({ path: 'src/example.ts', text })).toEqual(['src/example.ts:1', 'src/example.ts:2']);
});

test('finds each way to read them', () => {
  const lines = [
    "import { PACKETS } from './store/query.js';",
    "import { PACKETS as NAME } from './store/query.js';",
    "import { LATEST_FIRST } from './store/query.js';",
    "import { toPacketKey } from '../platform/mongo/bson/packet-key.js';",
    "db.collection('packets').find({});",
    "db.collection<Stored>('packets');",
    "db.collection('objects');",
    "const command = { find: 'packets', filter };",
    "const union = { $unionWith: { coll: 'packets', pipeline } };",
    "const lookUp = { from: 'packets', as: 'found' };",
    "const NAME = 'packets';",
    "const isPacket = change.store === 'packets';",
    "const tag = { tag: 'packets' };",
  ];
  expect(placesOf({ path: 'src/example.ts', text: `${lines.join('\n')}\n` })).toEqual(
    [1, 2, 4, 5, 6, 8, 9, 10, 11].map((line) => `src/example.ts:${line}`),
  );
});
