/** Routes: the track of an object as GeoJSON. */
import type { Request } from 'express';
import { z } from 'zod';
import { badRequest } from '../core/errors.js';
import type { Coordinates } from '../core/geo.js';
import { LIMITS } from '../core/limits.js';
import { completeInterval } from '../packets/default-interval.js';
import { EXPORT_TYPES } from '../packets/export-format.js';
import { GAP } from '../packets/routes.js';
import { getSource, type Source } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery } from '../platform/http/list-params.js';
import { ENTITY_KEY, FLAG, INTERVAL_QUERY } from '../platform/http/parameters.js';
import { parseCount, parseDurationParam, parseFlag, type Query } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { ANY_OBJECT, literal } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findTrack, type Track, type TrackQuery } from './exports/track.js';
import { tellInterval } from './told-interval.js';
import type { Stop, Trip, TripRules } from './trips.js';

export interface TrackDeps extends ListDeps {
  readonly database: Database;
}

const COORDINATES = z.array(z.number()).length(2);

const TRACK = z.object({
  type: z.literal('Feature'),
  id: z.string(),
  geometry: z.union([z.null(), ANY_OBJECT]),
  properties: z.object({
    id: z.string(),
    from: z.int().nullable().describe('The time of the first position'),
    to: z.int().nullable(),
    packets: z.int().describe('How many packets have a position'),
    distance: z.int().describe('Metres, without the noise of stops and without impossible jumps'),
    movingTime: z.int().describe('Milliseconds between stops'),
    maxSpeed: z.number().nullable().describe('Without speeds that the object cannot have had'),
    times: literal({
      type: 'array',
      description: 'The time of each coordinate; with several lines, a list for each',
    }).optional(),
    stops: z.array(z.object({ from: z.int(), to: z.int(), coordinates: COORDINATES })).optional(),
    trips: z
      .array(z.object({ from: z.int(), to: z.int(), distance: z.int(), start: COORDINATES, end: COORDINATES }))
      .optional(),
  }),
});

const STOP_QUERY = {
  stopTime: {
    schema: z.string().meta({ examples: ['5 min'] }),
    example: '5 min',
    description: 'An object that stays within `stopRadius` for this duration has stopped; 5 minutes by default',
  },
  stopRadius: {
    schema: z.int().min(1).max(LIMITS.stopRadiusMaxM).default(LIMITS.stopRadiusM),
    example: 100,
    description: 'Metres',
  },
} satisfies Record<string, Parameter>;

/** What is a trip, and what is a stop. */
export const TRIP_QUERY = { gap: GAP, ...STOP_QUERY } satisfies Record<string, Parameter>;

const getTrack = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/track',
  name: 'getTrack',
  tag: 'packets',
  summary: 'The track of an object as GeoJSON, with its distance, stops and trips',
  docs: 'The [track](history.md#tracks) of an object as GeoJSON, with distance, stops and trips',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: {
    ...INTERVAL_QUERY,
    where: LIST_QUERY.where,
    points: {
      component: 'trackPoints',
      schema: z.int().min(2).max(LIMITS.trackPoints).default(LIMITS.trackPointsUsual),
      example: 500,
      description: 'The maximal number of points of the line',
    },
    gap: GAP,
    stops: { schema: FLAG, example: 'true', description: 'Returns the stops and the trips between them' },
    ...STOP_QUERY,
  },
  answer: {
    description: 'A `Feature`: a `LineString`, or with gaps a `MultiLineString`',
    content: { [EXPORT_TYPES.geojson]: TRACK },
    headers: ['X-Interval'],
  },
  errors: [404, 413],
  handle: (deps: TrackDeps) => async (req, res) => {
    const query = parseTrackQuery(req);
    const source = await getSource(deps.database, scopeIn(res), String(req.params.id));
    const database = listDatabaseFor(deps, req, res);
    const work = async () => {
      const interval = await completeInterval(database, [source.objectId], query.selection);
      tellInterval(res, query.selection, interval);
      return findTrack(database, source.objectId, { ...query, selection: { ...query.selection, ...interval } });
    };
    const leaving = database.listing?.caller.disconnectSignal() ?? null;
    const found = await deps.listQueues.history.run(callerOf(res), work, leaving);
    sendJson(res, JSON.stringify(toFeature(source, found, query)), 200, `${EXPORT_TYPES.geojson}; charset=utf-8`);
  },
});

export const TRACK_ROUTES = [getTrack];

function parseTrackQuery({ query }: Request): TrackQuery {
  const selection = parseListQuery({ ...query, meta: 'true', offset: undefined, limit: undefined });
  const points = parseCount(query, 'points') ?? LIMITS.trackPointsUsual;
  if (points < 2 || points > LIMITS.trackPoints) throw badRequest(`points: expected 2 to ${LIMITS.trackPoints}`);
  return { selection, points, hasStops: parseFlag(query, 'stops'), ...parseTripRules(query) };
}

/** Throws a 400. */
export function parseTripRules(query: Query): TripRules {
  const stopRadiusM = parseCount(query, 'stopRadius') ?? LIMITS.stopRadiusM;
  if (stopRadiusM < 1 || stopRadiusM > LIMITS.stopRadiusMaxM) {
    throw badRequest(`stopRadius: expected 1 to ${LIMITS.stopRadiusMaxM} metres`);
  }
  return {
    stopRadiusM,
    gapMs: parseDurationParam(query, 'gap', LIMITS.trackGapMs),
    stopMs: parseDurationParam(query, 'stopTime', LIMITS.stopTimeMs),
  };
}

function toFeature({ objectId, ownId }: Source, track: Track, { hasStops }: TrackQuery): object {
  const lines = track.pieces.map((piece) => piece.map(([longitude, latitude]) => [longitude, latitude]));
  const times = track.pieces.map((piece) => piece.map(([, , timeMs]) => timeMs));
  const [line] = lines;
  const geometry =
    line === undefined
      ? null
      : lines.length === 1
        ? { type: 'LineString', coordinates: line }
        : { type: 'MultiLineString', coordinates: lines };
  const properties = {
    id: ownId,
    from: track.fromMs,
    to: track.toMs,
    packets: track.packets,
    distance: Math.round(track.distanceM),
    movingTime: track.movingMs,
    maxSpeed: track.maxSpeed,
    times: lines.length === 1 ? times[0] : times,
    ...(hasStops && { stops: track.stops.map(toStop), trips: track.trips.map(toTrip) }),
  };
  return { type: 'Feature', id: objectId, geometry, properties };
}

const toStop = ({ fromMs, toMs, ...place }: Stop): object => ({
  from: fromMs,
  to: toMs,
  coordinates: toCoordinates(place),
});

const toTrip = ({ fromMs, toMs, distanceM, start, end }: Trip): object => ({
  from: fromMs,
  to: toMs,
  distance: Math.round(distanceM),
  start: toCoordinates(start),
  end: toCoordinates(end),
});

/** Seven decimals are a centimetre. */
const toCoordinates = ({ longitude, latitude }: Coordinates): number[] =>
  [longitude, latitude].map((degrees) => Math.round(degrees * 1e7) / 1e7);
