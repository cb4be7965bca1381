/** types: prints TypeScript types of custom stores. */

import type { Command } from './command.js';
import { ownValue } from './field-names.js';
import { printComment, printSchema, type Schema } from './print-schema.js';

const types: Command = {
  name: 'types',
  usage: '[<store> …]',
  summary: 'Prints TypeScript types of your own stores, from their JSON Schemas',
  needsLogin: true,
  arguments: [0, 1_000],
  async run({ client, signal }, _values, names) {
    const stores = await client.stores.list({ signal, ...(names.length > 0 && { where: { name: names } }) }).all();
    const missing = names.filter((name) => !stores.some((store) => store.name === name));
    if (missing.length > 0) throw new TypeError(`There is no store ${missing.join(', ')}, or you do not see it`);
    console.log(printStoreTypes(stores.map(({ name, schema }) => ({ name, schema: (schema ?? {}) as Schema }))));
  },
};

/** For `client.store<Driver>('drivers')`: one type for each store, and a map of them. */
export function printStoreTypes(stores: readonly { name: string; schema: Schema }[]): string {
  const sorted = stores.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const declared = sorted.map(({ name, schema }) => {
    const inlined = inlineReferences(schema, schema, 0) as Schema;
    const whole = { type: 'object', ...inlined };
    return `${printComment(schema.description)}export type ${toTypeName(name)} = ${printSchema(whole)};\n`;
  });
  const map = sorted.map(({ name }) => `  '${name}': ${toTypeName(name)};\n`).join('');
  return [
    ...declared,
    `/** The types of entities by the names of their stores. */\nexport interface AddedStores {\n${map}}`,
  ].join('\n');
}

const MAX_DEPTH = 20;

/** Inlines references to `$defs`. Recursive schemas are cut off at a depth. */
function inlineReferences(part: unknown, whole: Schema, depth: number): unknown {
  if (depth > MAX_DEPTH) return {};
  if (Array.isArray(part)) return part.map((one) => inlineReferences(one, whole, depth + 1));
  if (typeof part !== 'object' || part === null) return part;
  const { $ref } = part as Schema;
  if (typeof $ref === 'string' && $ref.startsWith('#')) {
    const path = $ref.slice(1).split('/').filter(Boolean);
    const target = path.reduce<unknown>(
      (inner, name) => (inner === undefined ? undefined : ownValue(inner as Schema, decode(name))),
      whole,
    );
    return inlineReferences(target ?? {}, whole, depth + 5);
  }
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, inlineReferences(value, whole, depth + 1)]),
  );
}

const decode = (name: string): string => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');

/** Converts `night-shifts` to `NightShift`. */
function toTypeName(store: string): string {
  const words = store.replace(/s$/, '').split('-');
  return words.map((word) => (word[0] ?? '').toUpperCase() + word.slice(1)).join('') || 'Entity';
}

export const STORE_COMMANDS: readonly Command[] = [types];
