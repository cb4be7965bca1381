/** What a model could declare of the parameters that objects send. Pure. */
import { childrenOf, type Node } from './tree.js';

/** For devices that invent names. */
const MOST = 500;
/** As models accept names (core/model.ts). */
const PARAMETER_NAME = /^[^\s\p{Cc}]{1,64}$/u;

export interface Proposal {
  readonly name: string;
  /** Null where values are of several types, or of one that models do not have. */
  readonly dataType: string | null;
  /** The first value that was found. */
  readonly sample: unknown;
}

/** `values`: names and values of parameters, each as often as it was found. What the tree declares already is left out. */
export function proposalsOf(values: Iterable<readonly [name: string, value: unknown]>, tree: Node): Proposal[] {
  const declared = declaredIn(tree);
  const found = new Map<string, Proposal>();
  for (const [name, value] of values) {
    if (value === null || declared.has(name) || !PARAMETER_NAME.test(name)) continue;
    const dataType = dataTypeOf(value);
    const known = found.get(name);
    if (known === undefined) {
      if (found.size < MOST) found.set(name, { name, dataType, sample: value });
    } else if (known.dataType !== dataType) found.set(name, { ...known, dataType: null });
  }
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
}

export const toNode = ({ name, dataType }: Proposal): Node => ({
  type: 'argument',
  id: name,
  ...(dataType !== null && { dataType }),
});

function declaredIn(node: Node): Set<string> {
  const below = childrenOf(node).flatMap((child) => [...declaredIn(child)]);
  return new Set(node.type === 'argument' && typeof node.id === 'string' ? [node.id, ...below] : below);
}

function dataTypeOf(value: unknown): string | null {
  if (!Array.isArray(value)) return typeof value;
  const types = new Set(value.map((item) => (item === null ? 'null' : typeof item)));
  const [type = ''] = types;
  return types.size === 1 && ['number', 'boolean', 'string'].includes(type) ? `${type}[]` : null;
}
