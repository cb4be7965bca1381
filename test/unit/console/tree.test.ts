/** Changes of a model's tree: each keeps everything that it does not concern. */
import { expect, test } from '@jest/globals';
import {
  addNode,
  changeNode,
  moveNode,
  type Node,
  nodeAt,
  placeOf,
  removeNode,
  setField,
  toRootPatch,
} from '../../../src/console/models/tree.js';

const SPEED: Node = { type: 'argument', id: 'speed', vendor: { scale: 10 } };
const LOCK: Node = { type: 'action', id: 'lock', params: { doors: 'all' } };
const FOLDER: Node = { type: 'subsystem', id: 'doors', children: [LOCK] };
const ROOT: Node = { version: 3, children: [SPEED, FOLDER] };

test('finds the node at a path, and nothing beyond the leaves', () => {
  expect([nodeAt(ROOT, [1, 0]), nodeAt(ROOT, []), nodeAt(ROOT, [0, 0]), nodeAt(ROOT, [7])]).toEqual([
    LOCK,
    ROOT,
    undefined,
    undefined,
  ]);
});

test('changes one node, and keeps unknown fields of it and of all others', () => {
  const changed = changeNode(ROOT, [0], (node) => setField(node, 'unit', 'km/h'));
  expect(changed).toEqual({ version: 3, children: [{ ...SPEED, unit: 'km/h' }, FOLDER] });
  expect(ROOT.children).toEqual([SPEED, FOLDER]);
});

test('removes a field that is set to undefined', () => {
  expect(setField({ id: 'a', unit: 'm' }, 'unit', undefined)).toEqual({ id: 'a' });
});

test('adds a node below another one, and tells its path', () => {
  const [tree, path] = addNode(ROOT, [1], SPEED);
  expect([path, nodeAt(tree, path), nodeAt(tree, [1, 0])]).toEqual([[1, 1], SPEED, LOCK]);
  expect(addNode({}, [], SPEED)).toEqual([{ children: [SPEED] }, [0]]);
});

test('removes a node with everything below it', () => {
  expect(removeNode(ROOT, [1])).toEqual({ version: 3, children: [SPEED] });
});

test('moves a node among its siblings, and stops at the edge', () => {
  expect(moveNode(ROOT, [0], 1)).toEqual([{ version: 3, children: [FOLDER, SPEED] }, [1]]);
  expect(moveNode(ROOT, [0], -1)).toEqual([ROOT, [0]]);
});

test('finds the node that a refusal names', () => {
  expect(placeOf('data.children.1.children.0.id: needs an id')).toEqual([1, 0]);
  expect(placeOf('name: required')).toBeNull();
});

test('tells the service which fields of the root are gone', () => {
  expect(toRootPatch({ a: 1, b: 2 }, { b: 3, children: [] })).toEqual({ a: null, b: 3, children: [] });
});
