/** The boxes of a role say exactly what its lines permit, by the rules of every request. */
import { describe, expect, test } from '@jest/globals';

import {
  type Box,
  boxesOf,
  createGrid,
  gained,
  otherLines,
  permittedBy,
  type Row,
  requestsIn,
  stateOf,
  toggle,
} from '../../../src/console/roles/grid.js';
import { ENGLISH_ROLES } from '../../../src/console/text/english-roles.js';
import { isCredential, mayCall } from '../../../src/core/access.js';
import { BUILT_IN_ROLES } from '../../../src/core/builtin.js';
import { isForAll, requiredMethod } from '../../../src/core/route-access.js';
import { DOCUMENTED_ROUTES } from '../../../src/openapi/all-routes.js';
import { createOpenApi } from '../../../src/openapi/openapi.js';
import { fc, runsOf } from '../../support/runs.js';

const RUNS = { numRuns: runsOf(1_000) };
const OWN_STORES = ['drivers', 'everything'];
const declared = requestsIn(createOpenApi() as { paths: unknown });
const grid = createGrid(declared, OWN_STORES);
const boxes = boxesOf(grid);

/** Of an entity that no line names. */
const ENTITY = '65a000000000000000000777';

/** A request of each declared route. */
const calls = DOCUMENTED_ROUTES.flatMap(({ method, path, auth }) => {
  if (auth !== 'permission') return [];
  const paths = path.includes(':store') ? OWN_STORES.map((store) => path.replace(':store', store)) : [path];
  return paths.map((one) => {
    const segments = one.replace('/api/v1', '').split('/').filter(Boolean);
    const named = segments.map((segment) => (segment.startsWith(':') ? ENTITY : segment));
    return { method: requiredMethod(method, named), segments: named };
  });
});

const calledBy = new Map<string, ReadonlySet<number>>();

/** What a line permits: the place of each request among `calls`. */
function callsOf(line: string): ReadonlySet<number> {
  const known = calledBy.get(line);
  if (known !== undefined) return known;
  const holder = { credentials: [line], scopes: null };
  const found = new Set(
    calls.flatMap(({ method, segments }, index) => (mayCall(holder, method, segments) ? [index] : [])),
  );
  calledBy.set(line, found);
  return found;
}

const permittedCalls = (lines: readonly string[]): Set<number> => union(...lines.map(callsOf));
/** As a declared request is written. */
const lineOfCall = ({ method, segments }: (typeof calls)[number]): string =>
  `${method} /${segments.join('/').replaceAll(ENTITY, ':id')}`;

const union = (...sets: readonly ReadonlySet<number>[]): Set<number> => new Set(sets.flatMap((one) => [...one]));
const without = (one: ReadonlySet<number>, other: ReadonlySet<number>): Set<number> =>
  new Set([...one].filter((index) => !other.has(index)));

/** The same line, as people write it. */
const SPELLINGS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.replace(' /', ' '),
  (line) => line.replace(' /', ' /api/v1/'),
  (line) => line.replace(/\/\*(?=\/)/g, '/:any'),
  (line) => line.replace(/ \/(\w)/, (_, first: string) => ` /${first.toUpperCase()}`),
];

const boxLine = fc
  .tuple(fc.constantFrom(...boxes), fc.constantFrom(...SPELLINGS))
  .map(([{ line }, spell]) => spell(line));
const ODD_LINES = `
GET /objects/truck-7
GET /objects/:object
POST /objects/:object/packets
* /objects/truck-7/*
GET /objects
GET /objects/:id
POST /objects/*
DELETE /objects/:id
* /*/:id
POST /*/:id/access
GET /unknown/*
PUT /objects/*
GET /objects/*/packets
POST /objects/*/commands/lock
* /audit
GET /audit/*
GET /%ZZ
GET /objects/%2A
GET  /two-spaces
* *
nonsense`;
const oddLine = fc.oneof(
  fc.constantFrom(...ODD_LINES.trim().split('\n')),
  fc.string({ minLength: 1 }).filter((text) => text.trim() === text && !/[\r\n]/.test(text)),
);
const someLines = fc.array(fc.oneof({ weight: 3, arbitrary: boxLine }, oddLine), { maxLength: 12 });
const someBox = fc.constantFrom(...boxes);
const stateIn = (box: Box, lines: readonly string[]) => stateOf(box, lines, permittedBy(lines, grid.requests));
const isFree = (box: Box, lines: readonly string[]): boolean => stateIn(box, lines).kind !== 'covered';

/** The lines that are not those of the box: pressing it would leave them. */
const othersOf = (box: Box, lines: readonly string[]): string[] =>
  lines.filter((line) => toggle(box, [line], []).includes(line));

describe('the rows and boxes', () => {
  test('contain every declared request that needs a permission, once', () => {
    const wanted = new Set(calls.map(lineOfCall));
    expect(new Set(grid.requests.map(({ line }) => line))).toEqual(wanted);
    // Two methods of settings need the same line.
    expect(grid.requests).toHaveLength(wanted.size + 1);
    expect(declared.filter((one) => isForAll(one.split('/').slice(1)))).not.toEqual([]);
  });

  test('are one for each line, which is a valid one', () => {
    expect(new Set(boxes.map(({ line }) => line)).size).toBe(boxes.length);
    expect(boxes.filter(({ line }) => !isCredential(line))).toEqual([]);
    expect(boxes.filter(({ requests }) => requests.length === 0)).toEqual([]);
  });

  test('have words for whatever the service declares', () => {
    const hasText = (kind: string, { name, path }: Row): boolean =>
      [name, `any.${path.split('/').at(-1)}`].some((one) => Object.hasOwn(ENGLISH_ROLES, `roles.${kind}.${one}`));
    const stores = grid.rows.filter(({ name }) => name !== null);
    const below = stores.flatMap((row) => row.below);
    const missing = [
      ...stores.filter((row) => !hasText('of', row)),
      // Nobody creates "packets": they send them.
      ...below.filter((row) => row.boxes.POST && !hasText('POST', row)),
      ...below.filter((row) => !row.boxes.POST && !hasText('of', row)),
    ];
    expect(missing).toEqual([]);
  });

  test('say what lines of built-in roles permit, all but those of devices', () => {
    const others = BUILT_IN_ROLES.flatMap(({ credentials }) => otherLines(credentials as string[], grid));
    expect(others).toEqual([
      'GET /objects/:object',
      'POST /objects/:object/packets',
      'GET /objects/:object/commands/*',
      'POST /objects/:object/commands/*/result',
    ]);
  });

  test('name own stores by themselves, whatever they are called', () => {
    expect(grid.rows.filter(({ path }) => path === '/everything').map(({ name }) => name)).toEqual([null]);
  });

  test('permit exactly the requests that they say', () => {
    for (const { line, requests } of boxes) {
      const permitted = calls.filter((_, index) => callsOf(line).has(index)).map(lineOfCall);
      expect(new Set(requests.map((one) => one.line))).toEqual(new Set(permitted));
    }
  });
});

describe('the lines', () => {
  test('belong each to one box, or are kept beside them', () => {
    fc.assert(
      fc.property(someLines, (lines) => {
        const kept = otherLines(lines, grid);
        const ofBoxes = boxes.flatMap((box) => lines.filter((line) => !othersOf(box, lines).includes(line)));
        expect([...ofBoxes, ...kept].sort()).toEqual([...lines].sort());
      }),
      RUNS,
    );
  });

  test('are the same again when a box is pressed twice', () => {
    fc.assert(
      fc.property(someLines, someBox, (lines, box) => {
        fc.pre(isFree(box, lines));
        expect(toggle(box, toggle(box, lines, lines), lines)).toEqual(lines);
      }),
      RUNS,
    );
  });

  test('keep their order and spelling when another box is pressed', () => {
    fc.assert(
      fc.property(someLines, someLines, someBox, (stored, lines, box) => {
        expect(othersOf(box, toggle(box, lines, stored))).toEqual(othersOf(box, lines));
      }),
      RUNS,
    );
  });

  test('permit what the pressed box says, more or less, and nothing else', () => {
    fc.assert(
      fc.property(someLines, someBox, (lines, box) => {
        fc.pre(isFree(box, lines));
        const before = permittedCalls(lines);
        const after = permittedCalls(toggle(box, lines, lines));
        const ofBox = permittedCalls([box.line]);
        if (stateIn(box, lines).kind !== 'on') return expect(after).toEqual(union(before, ofBox));
        // What other lines permit besides stays.
        expect(union(after, ofBox)).toEqual(before);
        return expect(after).toEqual(permittedCalls(othersOf(box, lines)));
      }),
      RUNS,
    );
  });

  test('permit as much without the box that a wider line covers', () => {
    fc.assert(
      fc.property(someLines, fc.constantFrom('* /*', 'GET /*', '* /objects/*'), someBox, (some, wide, box) => {
        const lines = [...some, wide];
        const state = stateIn(box, lines);
        fc.pre(state.kind === 'covered');
        const by = 'by' in state ? state.by : '';
        expect(lines).toContain(by);
        expect(without(permittedCalls([box.line]), permittedCalls([by]))).toEqual(new Set());
      }),
      RUNS,
    );
  });

  test('permit nothing of a box that is off, and something of one that is partly on', () => {
    fc.assert(
      fc.property(someLines, someBox, (lines, box) => {
        const { kind } = stateIn(box, lines);
        const ofBox = permittedCalls([box.line]);
        const missing = without(ofBox, permittedCalls(lines)).size;
        if (kind === 'off') expect(missing).toBe(ofBox.size);
        if (kind === 'on' || kind === 'covered') expect(missing).toBe(0);
      }),
      RUNS,
    );
  });

  test('change for users as the effect says', () => {
    fc.assert(
      fc.property(someLines, someLines, (before, after) => {
        const effect = gained(before, after, grid);
        const now = permittedCalls([...before, ...[...effect.requests].map(({ line }) => line), ...effect.lines]);
        expect(now).toEqual(union(permittedCalls(before), permittedCalls(after)));
        if (effect.requests.size === 0) expect(without(permittedCalls(after), permittedCalls(before)).size).toBe(0);
      }),
      RUNS,
    );
  });
});
