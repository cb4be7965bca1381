/** Where a map begins, and the projection that says it. */
import { describe, expect, test } from '@jest/globals';
import { type Camera, cameraFor, cameraOf, MIN_ZOOM, WORLD_PX } from '../../../src/console/map/camera.js';
import { toLat, toLon, toX, toY } from '../../../src/console/map/mercator.js';

describe('mercator', () => {
  test.each([
    [0, 0, 0.5, 0.5],
    [-180, 85.051129, 0, 0],
    [180, -85.051129, 1, 1],
    [13.4, 52.5, 0.537222, 0.328046],
  ])('puts longitude %d and latitude %d at %d, %d', (lon, lat, x, y) => {
    expect(toX(lon)).toBeCloseTo(x, 6);
    expect(toY(lat)).toBeCloseTo(y, 6);
    expect(toLon(x)).toBeCloseTo(lon, 3);
    expect(toLat(y)).toBeCloseTo(lat, 3);
  });

  test('has no place beyond the ends of the map', () => {
    expect(toY(90)).toBeCloseTo(0, 6);
    expect(toY(-90)).toBeCloseTo(1, 6);
  });
});

describe('cameraFor', () => {
  const size = { widthPx: 1_000, heightPx: 600 };
  const extent = { west: 0.5, north: 0.3, east: 0.54, south: 0.33 };

  /** The places of an extent in the window, in pixels. */
  const inWindow = ({ x, y, zoom }: Camera) => {
    const worldPx = WORLD_PX * 2 ** zoom;
    const [left, right] = [extent.west, extent.east].map((place) => (place - x) * worldPx + size.widthPx / 2);
    const [top, bottom] = [extent.north, extent.south].map((place) => (place - y) * worldPx + size.heightPx / 2);
    return { left, right, top, bottom };
  };

  test('shows all of an extent, with room around it, as large as possible', () => {
    const { left = 0, right = 0, top = 0, bottom = 0 } = inWindow(cameraFor(extent, size));
    for (const [least, found] of [
      [60, left],
      [60, size.widthPx - right],
      [60, top],
      [60, size.heightPx - bottom],
    ] as const)
      expect(found).toBeGreaterThanOrEqual(least - 0.001);
    expect(Math.min(left, top)).toBeCloseTo(60, 3);
  });

  test('is not closer than a town for a single place', () => {
    expect(cameraFor({ west: 0.5, north: 0.3, east: 0.5, south: 0.3 }, size)).toEqual({ x: 0.5, y: 0.3, zoom: 13 });
  });

  test('does not reach beyond the poles', () => {
    const { y, zoom } = cameraFor({ west: 0, north: 0, east: 1, south: 0.1 }, size);
    expect(zoom).toBe(MIN_ZOOM);
    expect(y).toBeCloseTo(size.heightPx / 2 / (WORLD_PX * 2 ** zoom), 6);
  });

  test('takes the place of an address as it is', () => {
    const { x, y, zoom } = cameraOf({ lat: 52.5, lon: 13.4, zoom: 9 });
    expect([x, y, zoom]).toEqual([toX(13.4), toY(52.5), 9]);
  });
});
