/** Routes: reports on a group, on labels or on named objects. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { ReportName } from '../core/report-kinds.js';
import { parseCsvForm } from '../history/export-routes.js';
import { TRIP_QUERY } from '../history/track-routes.js';
import { EXPORT_TYPES } from '../packets/export-format.js';
import { CSV_QUERY } from '../packets/routes.js';
import { EXAMPLE_ID, ID } from '../platform/http/parameters.js';
import { parseCount, parseText } from '../platform/http/query-params.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { COUNT, TIME } from '../platform/http/schema.js';
import { parseReportInterval } from './interval.js';
import { createReport } from './kinds.js';
import { parseObjectSelection } from './objects.js';
import { type ReportDeps, sendReport } from './send.js';
import { SHIFT_PARTS } from './shift.js';
import { createCsvWriter, createJsonWriter, toFileName } from './writers.js';

const bound = (component: string, description: string, example: string): Parameter => ({
  component,
  schema: z.string(),
  example,
  description: `${description} of the interval, included; as in lists, but without a zone it is a time of \`tz\``,
});

/** What every report takes. */
const REPORT_QUERY = {
  group: {
    component: 'reportGroup',
    schema: ID,
    example: EXAMPLE_ID,
    description:
      'The `_id` of a group: the objects of it and of the groups below. Without `group`, `labels` and `objects`: all',
  },
  labels: {
    component: 'reportLabels',
    schema: z.array(z.string()).max(LIMITS.reportObjects),
    example: ['rented'],
    description: 'The objects with one of these labels',
  },
  objects: {
    component: 'reportObjects',
    schema: z.array(z.string()).max(LIMITS.reportObjects),
    example: ['truck-7'],
    description: 'The objects, by `_id` or own `id`',
  },
  from: { ...bound('reportFrom', 'The beginning', '2026-11-16'), isRequired: true },
  to: bound('reportTo', 'The end; by default now', '2026-11-22'),
  begin: bound('reportBegin', 'The same as `from`: the beginning', '2026-11-16'),
  end: bound('reportEnd', 'The same as `to`: the end', '2026-11-22'),
  tz: {
    component: 'reportZone',
    schema: z.string().default('UTC'),
    example: 'Europe/Berlin',
    description: 'The time zone of days, of times without a zone in the query, and of times in CSV',
  },
  limit: {
    component: 'reportLimit',
    schema: z.int().min(0).max(LIMITS.reportRows).default(LIMITS.reportRows),
    example: 1_000,
    description: `The maximal number of rows in JSON; larger values are reduced to ${LIMITS.reportRows}. Totals are those of all rows`,
  },
  format: {
    component: 'reportFormat',
    schema: z.enum(['json', 'csv']).default('json'),
    example: 'json',
    description: '`csv` is a file with all rows',
  },
  ...CSV_QUERY,
} satisfies Record<string, Parameter>;

const EVERY: Parameter = {
  component: 'reportEvery',
  schema: z.string().meta({ examples: ['1 day'] }),
  example: '1 day',
  description:
    'One row for each `1 day`, `1 week` or `1 month` by the clock of `tz`; without it, for the whole interval',
};

const PLACE = z.array(z.number()).length(2).describe('Longitude and latitude');
const METRES = z.int().min(0).describe('Metres');
const LENGTH = z.int().min(0).describe('Milliseconds');
const SPEED = z.number().nullable().describe('km/h');
const CUT = z
  .strictObject({ reason: z.string(), objects: COUNT.describe('How many objects are missing') })
  .nullable()
  .describe('Why the report ends early; `null` if it is complete');

const OF_OBJECT = { object: z.string().describe('`_id`'), id: z.string(), name: z.string() };
const OF_TOTALS = { objects: COUNT, rows: COUNT.describe('Also of those beyond `limit`') };

const answerOf = (description: string, row: z.ZodRawShape, totals: z.ZodRawShape, more: z.ZodRawShape = {}) => ({
  description,
  schema: z.strictObject({
    from: TIME,
    to: TIME,
    tz: z.string(),
    rows: z.array(z.strictObject({ ...OF_OBJECT, ...row })),
    totals: z.strictObject({ ...OF_TOTALS, ...totals }),
    cut: CUT,
    ...more,
  }),
  content: { [EXPORT_TYPES.csv]: z.string() },
  headers: ['Content-Disposition'] as const,
});

const getMileage = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/mileage',
  name: 'getMileageReport',
  tag: 'reports',
  summary: 'How far objects went, and how long they moved and stood',
  docs: '[Reports](reports.md) on objects: how far they went, and how long they moved and stood',
  auth: 'caller',
  limit: 'list',
  query: { ...REPORT_QUERY, every: EVERY, ...TRIP_QUERY },
  answer: answerOf(
    'One row for each object and part of the interval',
    {
      from: TIME,
      to: TIME,
      distance: METRES,
      trips: COUNT,
      movingTime: LENGTH,
      stops: COUNT,
      standingTime: LENGTH,
      maxSpeed: SPEED,
    },
    { distance: METRES, trips: COUNT, movingTime: LENGTH, stops: COUNT, standingTime: LENGTH, maxSpeed: SPEED },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'mileage'),
});

const getTrips = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/trips',
  name: 'getTripsReport',
  tag: 'reports',
  summary: 'The trips of objects',
  auth: 'caller',
  limit: 'list',
  query: { ...REPORT_QUERY, ...TRIP_QUERY },
  answer: answerOf(
    'One row for each trip',
    {
      from: TIME,
      to: TIME,
      duration: LENGTH,
      distance: METRES,
      averageSpeed: SPEED,
      maxSpeed: SPEED,
      start: PLACE,
      end: PLACE,
    },
    { duration: LENGTH, distance: METRES, maxSpeed: SPEED },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'trips'),
});

const getStops = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/stops',
  name: 'getStopsReport',
  tag: 'reports',
  summary: 'The stops of objects',
  auth: 'caller',
  limit: 'list',
  query: { ...REPORT_QUERY, ...TRIP_QUERY },
  answer: answerOf(
    'One row for each stop',
    { from: TIME, to: TIME, duration: LENGTH, place: PLACE },
    { duration: LENGTH },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'stops'),
});

const getGeofences = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/geofences',
  name: 'getGeofencesReport',
  tag: 'reports',
  summary: 'How long objects were in geofences, and how often they came',
  auth: 'caller',
  limit: 'list',
  query: {
    ...REPORT_QUERY,
    every: EVERY,
    geofences: {
      component: 'reportGeofences',
      schema: z.array(ID).max(LIMITS.reportGeofences),
      example: [EXAMPLE_ID],
      description: 'The `_id` of geofences; by default all that the caller may read',
    },
    gap: TRIP_QUERY.gap,
  },
  answer: answerOf(
    'One row for each object, part of the interval, and geofence that the object was in',
    {
      from: TIME,
      to: TIME,
      geofence: z.string().describe('`_id`'),
      geofenceName: z.string(),
      visits: COUNT,
      duration: LENGTH,
      arrival: TIME.describe('The first one'),
      departure: TIME.describe('The last one, or the last position'),
    },
    { visits: COUNT, duration: LENGTH },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'geofences'),
});

const getUtilization = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/utilization',
  name: 'getUtilizationReport',
  tag: 'reports',
  summary: 'How long a parameter of objects had each of its values',
  auth: 'caller',
  limit: 'list',
  query: {
    ...REPORT_QUERY,
    every: EVERY,
    param: {
      component: 'reportParameter',
      schema: z.string(),
      example: 'ignition',
      isRequired: true,
      description: 'The parameter, such as `ignition` or `engine.mode`: a boolean, a text or a number',
    },
    gap: {
      component: 'reportGap',
      schema: z.string().meta({ examples: ['1 h'] }),
      example: '1 h',
      description: 'How long a value holds without a further packet that has one; 1 hour by default',
    },
  },
  answer: answerOf(
    'One row for each object, part of the interval, and value',
    {
      from: TIME,
      to: TIME,
      value: z.string().nullable().describe(`\`null\`: further ones than ${LIMITS.reportStates}`),
      duration: LENGTH,
      share: z.number().min(0).max(1).describe('Of the part of the interval, up to now'),
      times: COUNT.describe('How often it began'),
    },
    { duration: LENGTH, times: COUNT },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'utilization'),
});

const getShift = defineRoute({
  method: 'GET',
  path: '/api/v1/reports/shift',
  name: 'getShiftReport',
  tag: 'reports',
  summary: 'What happened to objects: alarms, commands, notes, and when they were offline',
  auth: 'caller',
  limit: 'list',
  query: REPORT_QUERY,
  answer: answerOf(
    'One row for each alarm, command and note, and for each time in which an object was offline',
    {
      kind: z.enum(['alarm', 'command', 'note', 'offline']),
      from: TIME,
      to: TIME.nullable().describe('`null`: it has no end, or none yet'),
      text: z.string().describe('The name of the alarm or of the command, the text of the note'),
      status: z.string().nullable().describe('Of an alarm or a command, as it is now'),
      severity: z.string().nullable(),
      acknowledged: TIME.nullable(),
      user: ID.nullable().describe('Who acknowledged the alarm or sent the command; `null` for a command of a rule'),
      login: z.string().nullable().describe('Of the user, or of the author of the note'),
    },
    {},
    { missing: z.array(z.enum(SHIFT_PARTS)).describe('What the caller may not read') },
  ),
  errors: [413],
  handle: (deps: ReportDeps) => (req, res) => answer(deps, req, res, 'shift'),
});

export const REPORT_ROUTES = [getMileage, getTrips, getStops, getGeofences, getUtilization, getShift];

async function answer(deps: ReportDeps, req: Request, res: Response, name: ReportName): Promise<void> {
  const { query } = req;
  const nowMs = deps.now();
  const interval = parseReportInterval(query, nowMs);
  const selection = parseObjectSelection(query);
  const limit = Math.min(parseCount(query, 'limit') ?? LIMITS.reportRows, LIMITS.reportRows);
  const form = parseCsvForm(query);
  const isFile = isCsv(req);
  const report = createReport(name, query, interval, nowMs);
  if (isFile) {
    res.setHeader('Content-Disposition', `attachment; filename="${toFileName(report)}"`);
    const type = `${EXPORT_TYPES.csv}; charset=utf-8; header=present`;
    return sendReport(deps, req, res, { report, selection, writer: createCsvWriter(report, form), type });
  }
  const type = 'application/json; charset=utf-8';
  return sendReport(deps, req, res, { report, selection, writer: createJsonWriter(report, limit), type });
}

function isCsv(req: Request): boolean {
  const format = parseText(req.query, 'format') || null;
  if (format !== null && format !== 'json' && format !== 'csv') throw badRequest('format: expected json or csv');
  if (format !== null) return format === 'csv';
  return req.accepts(['application/json', EXPORT_TYPES.csv]) === EXPORT_TYPES.csv;
}
