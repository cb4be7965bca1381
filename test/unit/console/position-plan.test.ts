/** Which objects the console searches for their last position. */
import { expect, test } from '@jest/globals';
import { createPositionPlan, PLAN_LIMITS } from '../../../src/console/home/position-plan.js';
import { PLACE_NAMES } from '../../../src/core/position-fields.js';

const sensors = (count: number, model = 'sensor') =>
  Array.from({ length: count }, (_, nth) => ({ _id: `${model}-${nth}`, model, state: { time: 1, temperature: 7 } }));
const truck = (fields: object, model = 'truck') => ({ _id: `${model}-placed`, model, state: { time: 1, ...fields } });

type Objects = Parameters<typeof createPositionPlan>[0];

type Search = Pick<NonNullable<ReturnType<ReturnType<typeof createPositionPlan>['next']>>, 'ids' | 'names'>;

/** Every search until the end; `isFound` tells whether it finds the position of an object. */
function searchesOf(objects: Objects, isFound: (id: string, names: readonly string[]) => boolean, isKnown = none) {
  const found = new Set<string>();
  const plan = createPositionPlan(objects, (id) => !isKnown(id) && !found.has(id));
  const searches: Search[] = [];
  for (let search = plan.next(); search !== null; search = plan.next()) {
    searches.push(search);
    for (const id of search.ids) if (isFound(id, search.names)) found.add(id);
    search.finish();
  }
  return searches;
}

const idsOf = (searches: ReturnType<typeof searchesOf>) => searches.flatMap(({ ids }) => ids);
const none = (_id: string): boolean => false;
const all = () => true;

test('searches every object that has no position but sent a packet', () => {
  const objects = [...sensors(3), truck({ lat: 1, lon: 2 }), { _id: 'never', model: 'sensor' }];
  expect(idsOf(searchesOf(objects, all))).toEqual(['sensor-0', 'sensor-1', 'sensor-2']);
});

test('searches again for the objects of a search that the server did not answer', () => {
  const plan = createPositionPlan([...sensors(12)], all);
  const first = plan.next();
  first?.putBack();
  expect(plan.next()?.ids).toEqual(first?.ids);
});

test('stops at a model of which nothing has a position', () => {
  const ids = idsOf(searchesOf([...sensors(50_000), ...sensors(5, 'other')], none));
  expect(ids.filter((id) => id.startsWith('sensor'))).toHaveLength(PLAN_LIMITS.objectsInVainOfModel);
  expect(ids.filter((id) => id.startsWith('other'))).toHaveLength(5);
});

test('stops after as many objects without a position as a page load may cost', () => {
  const models = Array.from({ length: 100 }, (_, nth) => sensors(100, `model${nth}`)).flat();
  expect(idsOf(searchesOf(models, none))).toHaveLength(PLAN_LIMITS.objectsInVain);
  const mixed = [...sensors(5_000, 'truck'), truck({ lat: 1, lon: 2 })];
  expect(new Set(idsOf(searchesOf(mixed, none))).size).toBe(PLAN_LIMITS.objectsInVain);
  expect(idsOf(searchesOf(mixed, all))).toHaveLength(PLAN_LIMITS.objects);
});

test('goes on with a model once one of its objects was found', () => {
  const isFound = (id: string) => id === 'sensor-5';
  expect(idsOf(searchesOf(sensors(90), isFound))).toHaveLength(90);
});

test('searches models whose other objects have positions first, in the names that these use', () => {
  const objects = [...sensors(2), ...sensors(2, 'truck'), truck({ position: { lat: 1, lon: 2 } })];
  expect(searchesOf(objects, all)).toMatchObject([
    { ids: ['truck-0', 'truck-1'], names: ['position'] },
    { ids: ['sensor-0', 'sensor-1'], names: PLACE_NAMES },
  ]);
});

test('searches in all names where those of the others of the model did not help', () => {
  const objects = [...sensors(2, 'truck'), truck({ lat: 1, lon: 2 })];
  const isFound = (id: string, names: readonly string[]) => id === 'truck-0' || names.includes('gps');
  expect(searchesOf(objects, isFound)).toMatchObject([
    { ids: ['truck-0', 'truck-1'], names: ['lat', 'lon'] },
    { ids: ['truck-1'], names: PLACE_NAMES },
  ]);
});

test('counts an object that is searched twice once', () => {
  const objects = [...sensors(5_000, 'truck'), truck({ lat: 1, lon: 2 })];
  const searches = searchesOf(objects, (_id, names) => names.includes('gps'));
  expect(new Set(idsOf(searches)).size).toBe(PLAN_LIMITS.objects);
});

test('leaves out what sent a position meanwhile', () => {
  const isKnown = (id: string) => id !== 'sensor-29';
  expect(idsOf(searchesOf(sensors(30), all, isKnown))).toEqual(['sensor-29']);
});
