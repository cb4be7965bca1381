/** Geofences: their geometry is GeoJSON or refused; everything else of them is kept. */
import { expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService();
const RING = [
  [16.3, 48.2],
  [16.4, 48.2],
  [16.4, 48.3],
  [16.3, 48.2],
];

test.each<[string, object]>([
  ['a polygon', { type: 'Polygon', coordinates: [RING] }],
  ['a polygon with a hole', { type: 'Polygon', coordinates: [RING, RING] }],
  ['several polygons', { type: 'MultiPolygon', coordinates: [[RING], [RING]] }],
  ['a line', { type: 'LineString', coordinates: RING.slice(0, 2) }],
  ['a point', { type: 'Point', coordinates: [16.3, 48.2] }],
  ['a point with a height', { type: 'Point', coordinates: [-180, 90, 171.5] }],
  ['one with a box', { type: 'Point', coordinates: [0, 0], bbox: [0, 0, 0, 0] }],
])('stores %s unchanged', async (_, geometry) => {
  const made = entityOf(await service.admin('POST', 'geofences', { name: 'yard', geometry, radius: 50, color: 'red' }));
  const read = entityOf(await service.admin('GET', `geofences/${made._id}`));
  expect([read.geometry, read.radius, read.color]).toEqual([geometry, 50, 'red']);
});

test.each<[string, unknown]>([
  ['no type', { coordinates: [0, 0] }],
  ['another type', { type: 'Circle', coordinates: [0, 0] }],
  ['a longitude that is none', { type: 'Point', coordinates: [181, 0] }],
  ['latitude first', { type: 'Point', coordinates: [48.2, 116.3] }],
  ['one number', { type: 'Point', coordinates: [1] }],
  ['text', { type: 'Point', coordinates: ['1', '2'] }],
  ['an open ring', { type: 'Polygon', coordinates: [[...RING.slice(0, 3), [16.3, 48.25]]] }],
  ['a ring of three positions', { type: 'Polygon', coordinates: [[RING[0], RING[1], RING[0]]] }],
  ['no ring', { type: 'Polygon', coordinates: [] }],
  ['a line of one position', { type: 'LineString', coordinates: [[0, 0]] }],
  ['something else', 'POINT(0 0)'],
])('refuses %s on creation and change, and names the field', async (_, geometry) => {
  expectRefusal(await service.admin('POST', 'geofences', { geometry }), 400, 'geometry');
  const { _id } = entityOf(await service.admin('POST', 'geofences', { name: 'free', points: [[1, 2]] }));
  expectRefusal(await service.admin('PATCH', `geofences/${_id}`, { geometry }), 400, 'geometry');
});

test('replaces the geometry in a change', async () => {
  const { _id } = entityOf(
    await service.admin('POST', 'geofences', { geometry: { type: 'Polygon', coordinates: [RING] } }),
  );
  const geometry = { type: 'Point', coordinates: [1, 2] };
  expect(entityOf(await service.admin('PATCH', `geofences/${_id}`, { geometry })).geometry).toEqual(geometry);
  expect(entityOf(await service.admin('PATCH', `geofences/${_id}`, { geometry: null })).geometry).toBeNull();
});
