/** Routes: the track of an object as GeoJSON. */
import { type Request, type RequestHandler, Router } from 'express';
import { badRequest } from '../core/errors.js';
import type { Place } from '../core/geo.js';
import { LIMITS } from '../core/limits.js';
import { getSource, type Source } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseCount, parseDurationParam, parseFlag, parseListQuery } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { EXPORT_TYPES } from './export-format.js';
import { findTrack, type Track, type TrackQuery } from './exports/track.js';
import type { Stop, Trip } from './trips.js';

export interface TrackDeps extends ListDeps {
  readonly database: Database;
}

export function createTrackRouter(deps: TrackDeps): Router {
  const router = Router();
  router.route('/objects/:id/track').get(track(deps)).all(allowMethods('GET'));
  return router;
}

const track =
  (deps: TrackDeps): RequestHandler =>
  async (req, res) => {
    const query = parseTrackQuery(req);
    const source = await getSource(deps.database, scopeIn(res), String(req.params.id));
    const database = listDatabaseFor(deps, req, res);
    const work = () => findTrack(database, source.objectId, query);
    const leaving = database.listing?.caller.disconnectSignal() ?? null;
    const found = await deps.listQueues.history.run(callerOf(res).userId, work, leaving);
    sendJson(res, JSON.stringify(toFeature(source, found, query)), 200, `${EXPORT_TYPES.geojson}; charset=utf-8`);
  };

function parseTrackQuery({ query }: Request): TrackQuery {
  const selection = parseListQuery({ ...query, meta: 'true', offset: undefined, limit: undefined });
  const points = parseCount(query, 'points') ?? LIMITS.trackPointsUsual;
  if (points < 2 || points > LIMITS.trackPoints) throw badRequest(`points: expected 2 to ${LIMITS.trackPoints}`);
  const stopRadiusM = parseCount(query, 'stopRadius') ?? LIMITS.stopRadiusM;
  if (stopRadiusM < 1 || stopRadiusM > LIMITS.stopRadiusMaxM) {
    throw badRequest(`stopRadius: expected 1 to ${LIMITS.stopRadiusMaxM} metres`);
  }
  return {
    selection,
    points,
    stopRadiusM,
    hasStops: parseFlag(query, 'stops'),
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
const toCoordinates = ({ longitude, latitude }: Place): number[] =>
  [longitude, latitude].map((degrees) => Math.round(degrees * 1e7) / 1e7);
