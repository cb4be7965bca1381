/** What is compared, in the address of the page. */
import { describe, expect, test } from '@jest/globals';
import {
  comparedOf,
  scaled,
  shifted,
  withLayout,
  withSeries,
  withWhole,
  withZoom,
} from '../../../src/console/compare/compared.js';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 10, 28, 12, 0, 30);
const queryOf = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));
const read = (text: string) => comparedOf(queryOf(text), NOW_MS);

test('keeps series with commas, colons and percent signs in their names', () => {
  const series = [
    { object: 'a:b,c', path: 'engine.rpm' },
    { object: '65a00000000000000000000a', path: '100%,:é' },
  ];
  const query = withSeries({ hours: '6' }, series);
  expect(read(query).series).toEqual(series);
  expect(queryOf(query).hours).toBe('6');
  expect(withSeries(queryOf(query), [])).toBe('hours=6');
});

test('takes eight series at most, each once, and none that cannot be read', () => {
  const many = Array.from({ length: 12 }, (_, nth) => `object-${nth}:speed`);
  const text = ['a:%', ':speed', 'object', 'object-0:speed', ...many].join();
  expect(read(new URLSearchParams({ series: text }).toString()).series.map(({ object }) => object)).toEqual(
    many.slice(0, 8).map((one) => one.split(':')[0]),
  );
});

describe('The interval', () => {
  test.each([
    ['', 24],
    ['hours=1', 1],
    ['hours=720', 720],
    ['hours=-1', 24],
    ['hours=1.5', 24],
    ['hours=1e9', 24],
    ['hours=x', 24],
    ['from=2026-11-28&to=x', 24],
  ])('follows the query "%s": up to now, %d h long', (text, hours) => {
    const { shown, isZoomed } = read(text);
    expect(isZoomed).toBe(false);
    expect(shown.toMs - shown.fromMs).toBe(hours * HOUR_MS);
    expect(shown.toMs).toBeGreaterThanOrEqual(NOW_MS);
    // At most by a point.
    expect(shown.toMs - NOW_MS).toBeLessThanOrEqual(Math.max(60_000, (hours * HOUR_MS) / 600));
  });

  test('stays the same for a minute while it ends now', () => {
    expect(comparedOf({ hours: '1' }, NOW_MS + 20_000)).toEqual(comparedOf({ hours: '1' }, NOW_MS));
    expect(comparedOf({ hours: '1' }, NOW_MS + 60_000)).not.toEqual(comparedOf({ hours: '1' }, NOW_MS));
  });

  test('goes on if it has whole hours and ends now, and otherwise stays', () => {
    const ending = { fromMs: NOW_MS - 6 * HOUR_MS, toMs: NOW_MS };
    const query = { series: 'a:b', from: '2026-01-01', to: '2026-01-02', zoom: '1,2' };
    expect(queryOf(withWhole(query, ending, NOW_MS))).toEqual({ series: 'a:b', hours: '6' });
    const past = { fromMs: NOW_MS - 30 * HOUR_MS, toMs: NOW_MS - 24 * HOUR_MS };
    const kept = queryOf(withWhole({ hours: '6' }, past, NOW_MS));
    expect(Object.keys(kept).sort()).toEqual(['from', 'to']);
    expect(comparedOf(kept, NOW_MS).shown).toEqual(past);
    const future = { fromMs: NOW_MS - HOUR_MS, toMs: NOW_MS + HOUR_MS };
    expect(comparedOf(queryOf(withWhole({}, future, NOW_MS)), NOW_MS).shown).toEqual(future);
  });

  test('is shown in part while it is zoomed, and whole again afterwards', () => {
    const zoom = { fromMs: NOW_MS - 2_000_000, toMs: NOW_MS - 1_000_000 };
    const query = queryOf(withZoom({ hours: '24', series: 'a:b' }, zoom));
    const { shown, whole, isZoomed } = comparedOf(query, NOW_MS);
    expect([shown, isZoomed, whole.toMs - whole.fromMs]).toEqual([zoom, true, 24 * HOUR_MS]);
    expect(queryOf(withZoom(query, null))).toEqual({ hours: '24', series: 'a:b' });
    expect(comparedOf({ zoom: '5,x' }, NOW_MS).isZoomed).toBe(false);
  });
});

test('keeps the layout', () => {
  expect(read(withLayout({}, true)).isBelow).toBe(true);
  expect(withLayout({ as: 'below', hours: '1' }, false)).toBe('hours=1');
});

test('moves and scales intervals around their middle, and never to nothing', () => {
  expect(shifted({ fromMs: 100, toMs: 200 }, -0.5)).toEqual({ fromMs: 50, toMs: 150 });
  expect(scaled({ fromMs: 0, toMs: 40_000 }, 0.5)).toEqual({ fromMs: 10_000, toMs: 30_000 });
  expect(scaled({ fromMs: 0, toMs: 2_000 }, 0.5)).toEqual({ fromMs: 0, toMs: 2_000 });
});
