/** The way of an object: its places, and the lines between them. */
import { silenceMsOf } from './chart-data.js';

export interface TrackPoint {
  readonly timeMs: number;
  readonly lat: number;
  /** Beyond 180 degrees where the way crosses the antimeridian; maps repeat the world there. */
  readonly lon: number;
}

/** The way of an object, and the lines that are drawn of it: places with a long time between them are not connected. */
export interface WholeRoute {
  readonly points: readonly TrackPoint[];
  readonly lines: readonly (readonly [number, number][])[];
}

/** The same places, without jumps from one edge of the world to the other. */
export function unwrapTrack(track: readonly TrackPoint[]): TrackPoint[] {
  let before = track[0]?.lon ?? 0;
  return track.map((point) => {
    before = point.lon + Math.round((before - point.lon) / 360) * 360;
    return { ...point, lon: before };
  });
}

/** The lines of a way, without those that cross a silence of the device. */
export function toLines(track: readonly TrackPoint[]): [number, number][][] {
  const gapMs = silenceMsOf(track.map(({ timeMs }) => timeMs));
  const lines: [number, number][][] = [];
  let beforeMs = Number.NEGATIVE_INFINITY;
  for (const { timeMs, lon, lat } of track) {
    if (timeMs - beforeMs > gapMs) lines.push([]);
    lines.at(-1)?.push([lon, lat]);
    beforeMs = timeMs;
  }
  return lines.filter(({ length }) => length > 1);
}

/** The last point at or before a moment. */
export function pointAt(track: readonly TrackPoint[], timeMs: number): TrackPoint | undefined {
  let low = 0;
  let high = track.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((track[middle] as TrackPoint).timeMs <= timeMs) low = middle;
    else high = middle - 1;
  }
  return track[low];
}

export function routeOf(places: readonly TrackPoint[]): WholeRoute {
  const points = unwrapTrack(places);
  return { points, lines: toLines(points) };
}

type Position = readonly number[];

/** The line of a track as the service computes it. */
export interface TrackFeature {
  readonly geometry:
    | { readonly type: 'LineString'; readonly coordinates: readonly Position[] }
    | { readonly type: 'MultiLineString'; readonly coordinates: readonly (readonly Position[])[] }
    | null;
  readonly properties: { readonly times: readonly number[] | readonly (readonly number[])[] };
}

/** The route of a track that the service has simplified: its lines are connected, however far their points are apart. */
export function routeOfFeature({ geometry, properties }: TrackFeature): WholeRoute {
  if (geometry === null) return { points: [], lines: [] };
  const isOne = geometry.type === 'LineString';
  const coordinates = isOne ? [geometry.coordinates] : geometry.coordinates;
  const times = (isOne ? [properties.times] : properties.times) as readonly (readonly number[])[];
  const places = coordinates.flatMap((line, nth) =>
    line.map(([lon = 0, lat = 0], index) => ({ timeMs: times[nth]?.[index] ?? 0, lat, lon })),
  );
  const points = unwrapTrack(places);
  let end = 0;
  const lines = coordinates.map(({ length }) => {
    const line = points.slice(end, end + length);
    end += length;
    return line.map(({ lon, lat }): [number, number] => [lon, lat]);
  });
  return { points, lines };
}
