/** Outlines of a globe on a flat map. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { FeatureCollection, Position } from 'geojson';
import { feature } from 'topojson-client';
import { shortWay, spanOf, unwrap } from '../../../src/console/map/antimeridian.js';

const polygon = (ring: Position[]): FeatureCollection => ({
  type: 'FeatureCollection',
  features: [{ type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [ring] } }],
});

/** All lines of all outlines. */
function linesOf({ features }: FeatureCollection): Position[][] {
  return features.flatMap(({ geometry }) => {
    if (geometry.type === 'MultiPolygon') return geometry.coordinates.flat();
    return geometry.type === 'Polygon' || geometry.type === 'MultiLineString' ? geometry.coordinates : [];
  });
}

test('continues a country that crosses the antimeridian beyond it', () => {
  const ring = [...[170, 179, -179, -170, -179, 179, 170].map((lon, index) => [lon, index < 4 ? 60 : 65]), [170, 60]];
  const [unwrapped = []] = linesOf(unwrap(polygon(ring)));
  expect(unwrapped.map(([lon]) => lon)).toEqual([170, 179, 181, 190, 181, 179, 170, 170]);
});

test('continues a line in either direction', () => {
  const coordinates = [[-170, 179].map((lon) => [lon, 10])];
  const lines = {
    type: 'Feature' as const,
    properties: {},
    geometry: { type: 'MultiLineString' as const, coordinates },
  };
  expect(linesOf(unwrap({ type: 'FeatureCollection', features: [lines] }))).toEqual([
    [
      [-170, 10],
      [-181, 10],
    ],
  ]);
});

test('closes a country that surrounds the pole along it', () => {
  const ring = [0, 90, 180, -90, 0].map((lon) => [lon, -80]);
  const [unwrapped = []] = linesOf(unwrap(polygon(ring)));
  expect(unwrapped.slice(-3)).toEqual([
    [360, -90],
    [0, -90],
    [0, -80],
  ]);
});

test.each(['110m', '50m'])('leaves no outline of %s that leads around the world', (scale) => {
  const world = JSON.parse(readFileSync(`node_modules/world-atlas/countries-${scale}.json`, 'utf8'));
  const lines = linesOf(unwrap(feature(world, world.objects.countries) as unknown as FeatureCollection));
  const isLong = ([lon = 0, lat = 0]: Position, [before = lon]: Position): boolean =>
    lat > -89 && Math.abs(lon - before) > 180;
  expect(lines.filter((line) => line.some((point, index) => isLong(point, line[index - 1] ?? point)))).toEqual([]);
  expect(lines.every((line) => line.at(-1)?.join() === line[0]?.join())).toBe(true);
});

test.each([
  ['a fleet in Europe', [0.5, 0.53, 0.55], [0.5, 0.55]],
  ['a fleet around Fiji', [0.01, 0.02, 0.98, 0.99], [0.98, 1.02]],
  ['two places close to the antimeridian', [0.001, 0.999], [0.999, 1.001]],
  ['places all over the world', [0.05, 0.3, 0.55, 0.9], [0.05, 0.9]],
  ['one place', [0.7], [0.7, 0.7]],
])('finds the narrowest part of the world with %s', (_name, places, span) => {
  expect(spanOf(places).map((x) => Math.round(x * 1_000) / 1_000)).toEqual(span);
});

test('goes the short way between two places, also across the antimeridian', () => {
  const ways = [0, 0.3, -0.3, 0.99, -0.99].map((way) => Math.round(shortWay(way) * 100) / 100);
  expect(ways).toEqual([0, 0.3, -0.3, -0.01, 0.01]);
});
