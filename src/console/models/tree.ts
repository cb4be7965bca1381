/** The tree of a model and its changes. Every change keeps all fields that it does not concern, also unknown ones. */

type Json = Readonly<Record<string, unknown>>;

export interface Node extends Json {
  readonly id?: string;
  readonly name?: string;
  readonly type?: string;
  readonly children?: readonly Node[];
}

/** The way to a node: the index at each level. The root is at `[]`. */
export type Path = readonly number[];

export const childrenOf = (node: Node): readonly Node[] => (Array.isArray(node.children) ? node.children : []);

export function nodeAt(root: Node, path: Path): Node | undefined {
  return path.reduce((node: Node | undefined, index) => (node ? childrenOf(node)[index] : undefined), root);
}

/** Replaces the node at a path by what `change` makes of it. */
export function changeNode(root: Node, path: Path, change: (node: Node) => Node): Node {
  const [index, ...rest] = path;
  if (index === undefined) return change(root);
  const children = childrenOf(root).map((child, at) => (at === index ? changeNode(child, rest, change) : child));
  return { ...root, children };
}

/** Sets a field; undefined removes it. */
export function setField(node: Node, name: string, value: unknown): Node {
  if (value !== undefined) return { ...node, [name]: value };
  return Object.fromEntries(Object.entries(node).filter(([key]) => key !== name));
}

/** Adds a node as the last child of the node at a path; gives the new tree, and the path of the new node. */
export function addNode(root: Node, parent: Path, node: Node): [Node, Path] {
  const index = childrenOf(nodeAt(root, parent) ?? {}).length;
  const changed = changeNode(root, parent, (one) => ({ ...one, children: [...childrenOf(one), node] }));
  return [changed, [...parent, index]];
}

export function removeNode(root: Node, path: Path): Node {
  const index = path.at(-1);
  return changeNode(root, path.slice(0, -1), (parent) => ({
    ...parent,
    children: childrenOf(parent).filter((_, at) => at !== index),
  }));
}

/** Moves a node among its siblings; gives the new tree, and its new path. At the edge it stays. */
export function moveNode(root: Node, path: Path, by: -1 | 1): [Node, Path] {
  const parent = path.slice(0, -1);
  const from = path.at(-1) ?? 0;
  const to = from + by;
  const children = [...childrenOf(nodeAt(root, parent) ?? {})];
  const moved = children[from];
  const other = children[to];
  if (moved === undefined || other === undefined) return [root, path];
  [children[from], children[to]] = [other, moved];
  return [changeNode(root, parent, (one) => ({ ...one, children })), [...parent, to]];
}

/** The way to the node of a refusal such as `data.children.0.id: an argument needs an id`. */
export function placeOf(message: string): Path | null {
  const [, steps] = /^data((?:\.children\.\d+)*)(?:\.\w[^:]*)?: /.exec(message) ?? [];
  return steps === undefined ? null : [...steps.matchAll(/\d+/g)].map(([index]) => Number(index));
}

/** A merge patch from one root to another: members that are gone become null. */
export function toRootPatch(before: Node, after: Node): Json {
  const gone = Object.keys(before).filter((name) => !(name in after));
  return { ...after, ...Object.fromEntries(gone.map((name) => [name, null])) };
}
