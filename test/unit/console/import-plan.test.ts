/** What the rows of a table would do to objects. */
import { describe, expect, test } from '@jest/globals';
import { parseSheet } from '../../../src/console/import/csv.js';
import { guessTargets, idsOf, type Known, type Present, planRows } from '../../../src/console/import/plan.js';

const VAN: Present = {
  _id: 'a'.repeat(24),
  id: 'van',
  name: 'Van',
  model: '1'.repeat(24),
  group: '2'.repeat(24),
  labels: ['van'],
  config: { plate: 'M-1', seats: 3, tracked: true, owner: { name: 'Ann' } },
};

const known = (more: Partial<Known> = {}): Known => ({
  objects: new Map([['van', VAN]]),
  groups: [
    { _id: '2'.repeat(24), name: 'North' },
    { _id: '3'.repeat(24), name: 'South' },
    { _id: '4'.repeat(24), name: 'Twin' },
    { _id: '5'.repeat(24), name: 'Twin' },
  ],
  models: [{ _id: '1'.repeat(24), name: 'Tracker' }],
  may: { create: true, change: true, move: true },
  ...more,
});

const plan = (text: string, more: Partial<Known> = {}) => {
  const sheet = parseSheet(text);
  return planRows(sheet, guessTargets(sheet.columns), known(more));
};

test('matches columns to fields by their names, each field once', () => {
  const columns = ['ID', 'Bezeichnung', 'Modell', 'Gruppe', 'Labels', 'config.plate', 'Farbe', 'id'];
  expect(guessTargets(columns)).toEqual(['id', 'name', 'model', 'group', 'labels', 'config.plate', '', '']);
});

test('asks for each valid id once, in the form in which it is stored', () => {
  const sheet = parseSheet('id\nvan\nvan\na/b\n*\n\ncafe\u0301\n');
  expect(idsOf(sheet, ['id'])).toEqual(['van', 'a/b', 'café']);
});

describe('a row', () => {
  test('creates an object with the fields of its cells', () => {
    const [row] = plan(
      'id;name;model;group;labels;description;config.plate;config.owner.name\nbus;Bus 7;Tracker;South;"bus, big";;007;Bob\n',
    );
    expect(row).toMatchObject({ kind: 'create', row: 2, _id: null, group: '3'.repeat(24) });
    expect(row?.body).toEqual({
      id: 'bus',
      name: 'Bus 7',
      model: '1'.repeat(24),
      labels: ['bus', 'big'],
      config: { plate: '007', owner: { name: 'Bob' } },
    });
  });

  test('changes only what differs, keeps what is empty, and keeps numbers and booleans such', () => {
    const [row] = plan('id,name,labels,group,config.plate,config.seats,config.tracked\nvan,Van,,South,M-1,4,FALSE\n');
    expect(row).toMatchObject({ kind: 'change', _id: VAN._id, group: '3'.repeat(24), fields: ['config', 'group'] });
    expect(row?.body).toEqual({ config: { seats: 4, tracked: false } });
  });

  test('sends a member called __proto__ as it is, and leaves the prototype of all objects alone', () => {
    const [row] = plan('id,name,config.__proto__.admin,config.a.__proto__\nbus,Bus,yes,x\n');
    const sent = JSON.stringify(row?.body);
    expect(sent).toBe('{"id":"bus","name":"Bus","config":{"__proto__":{"admin":"yes"},"a":{"__proto__":"x"}}}');
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });

  test('changes nothing if all is as it says', () => {
    const text = 'id,name,model,group,labels,config.seats,config.owner.name\nvan,Van,Tracker,North,van,3,Ann\n';
    expect(plan(text)).toMatchObject([{ kind: 'same', body: {}, group: null, fields: [] }]);
  });

  test.each([
    ['noId', 'id,name\n,X\n', ''],
    ['badId', 'id,name\n*,X\n', '*'],
    ['noName', 'id,name\nbus,\n', ''],
    ['unknownGroup', 'id,name,group\nbus,Bus,West\n', 'West'],
    ['severalGroups', 'id,name,group\nbus,Bus,Twin\n', 'Twin'],
    ['unknownModel', 'id,name,model\nbus,Bus,Car\n', 'Car'],
  ])('is refused for %s', (name, text, value) => {
    expect(plan(text)).toMatchObject([{ kind: 'refused', fault: { name, value }, body: {} }]);
  });

  test('is refused if an earlier row has its id', () => {
    const [, second] = plan('id,name\nbus,A\n bus ,B\n');
    expect(second).toMatchObject({ row: 3, kind: 'refused', fault: { name: 'twice', value: '2' } });
  });

  test.each([
    ['mayNotCreate', 'id,name\nbus,Bus\n', 'create'],
    ['mayNotChange', 'id,name\nvan,Other\n', 'change'],
    ['mayNotMove', 'id,group\nvan,South\n', 'move'],
  ])('is refused for %s', (name, text, right) => {
    const may = { ...known().may, [right]: false };
    expect(plan(text, { may })).toMatchObject([{ kind: 'refused', fault: { name } }]);
  });
});
