/** Makes a report of each kind, as a query asks for it. */
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { isPath } from '../core/list.js';
import type { ReportName } from '../core/report-kinds.js';
import { parseTripRules } from '../history/track-routes.js';
import { parseDurationParam, parseText, type Query } from '../platform/http/query-params.js';
import { geofenceReport } from './geofence-times.js';
import type { ReportInterval } from './interval.js';
import { mileageReport } from './mileage.js';
import { parseIds } from './objects.js';
import type { Report } from './report.js';
import { shiftReport } from './shift.js';
import { stopsReport, tripsReport } from './trips-and-stops.js';
import { utilizationReport } from './utilization.js';

type CreateReport = (query: Query, interval: ReportInterval, nowMs: number) => Report;

const CREATE: Readonly<Record<ReportName, CreateReport>> = {
  mileage: (query, interval) => mileageReport(interval, parseTripRules(query)),
  trips: (query, interval) => tripsReport(interval, parseTripRules(query)),
  stops: (query, interval) => stopsReport(interval, parseTripRules(query)),
  geofences: (query, interval) =>
    geofenceReport(interval, parseTripRules(query), parseIds(query, 'geofences', LIMITS.reportGeofences)),
  utilization(query, interval, nowMs) {
    const param = parseText(query, 'param') ?? '';
    if (!isPath(param) || param === 'time') throw badRequest('param: expected the name of a parameter');
    const gapMs = parseDurationParam(query, 'gap', LIMITS.reportGapMs);
    return utilizationReport(interval, { param, gapMs, nowMs });
  },
  shift: (_query, interval) => shiftReport(interval),
};

/** Throws a 400 that names the parameter. */
export const createReport = (name: ReportName, query: Query, interval: ReportInterval, nowMs: number): Report =>
  CREATE[name](query, interval, nowMs);
