/** The operations that export, summarize and remove packets. */
import { EXPORT_TYPES } from '../history/export-format.js';
import type { Part } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

const TEXT: Part = { type: 'string' };

const INTEGER: Part = { type: 'integer' };
const COORDINATES: Part = { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 };

const FEATURES: Part = {
  type: 'object',
  properties: {
    type: { const: 'FeatureCollection' },
    features: { type: 'array', items: { type: 'object' } },
    error: { type: 'object', description: 'Why packets are missing; absent when the export is complete' },
  },
  required: ['type', 'features'],
};

/** The content of exports by media type. */
export const EXPORT_CONTENT: Readonly<Record<string, Part>> = {
  [EXPORT_TYPES.csv]: TEXT,
  [EXPORT_TYPES.ndjson]: TEXT,
  [EXPORT_TYPES.geojson]: FEATURES,
  [EXPORT_TYPES.gpx]: TEXT,
};

const STOP: Part = {
  type: 'object',
  properties: { from: INTEGER, to: INTEGER, coordinates: COORDINATES },
  required: ['from', 'to', 'coordinates'],
};

const TRIP: Part = {
  type: 'object',
  properties: { from: INTEGER, to: INTEGER, distance: INTEGER, start: COORDINATES, end: COORDINATES },
  required: ['from', 'to', 'distance', 'start', 'end'],
};

const TRACK_PROPERTIES: Part = {
  type: 'object',
  properties: {
    id: TEXT,
    from: { type: ['integer', 'null'], description: 'The time of the first position' },
    to: { type: ['integer', 'null'] },
    packets: { type: 'integer', description: 'How many packets have a position' },
    distance: { type: 'integer', description: 'Metres, without the noise of stops and without impossible jumps' },
    movingTime: { type: 'integer', description: 'Milliseconds between stops' },
    maxSpeed: { type: ['number', 'null'], description: 'Without speeds that the object cannot have had' },
    times: { type: 'array', description: 'The time of each coordinate; with several lines, a list for each' },
    stops: { type: 'array', items: STOP },
    trips: { type: 'array', items: TRIP },
  },
  required: ['id', 'from', 'to', 'packets', 'distance', 'movingTime', 'maxSpeed'],
};

const TRACK_FEATURE: Part = {
  type: 'object',
  properties: {
    type: { const: 'Feature' },
    id: TEXT,
    geometry: { anyOf: [{ type: 'null' }, { type: 'object' }] },
    properties: TRACK_PROPERTIES,
  },
  required: ['type', 'id', 'geometry', 'properties'],
};

export const TRACK: Operation = {
  method: 'get',
  path: '/api/v1/objects/{id}/track',
  id: 'getTrack',
  tag: 'packets',
  summary: 'The track of an object as GeoJSON, with its distance, stops and trips',
  query: ['from', 'to', 'begin', 'end', 'where', 'trackPoints', 'trackGap', 'stops', 'stopTime', 'stopRadius'],
  answer: {
    description: 'A `Feature`: a `LineString`, or with gaps a `MultiLineString`',
    content: { [EXPORT_TYPES.geojson]: TRACK_FEATURE },
  },
  errors: [401, 403, 404, 413, 429],
};

const REMOVED: Part = {
  type: 'object',
  properties: {
    success: { const: true },
    status: { const: 'queued', description: 'The packets will be removed' },
    count: { type: 'integer', minimum: 0, description: 'With `dryRun`: how many packets would be removed' },
  },
  required: ['success'],
  additionalProperties: false,
};

export const REMOVAL: Operation = {
  method: 'delete',
  path: '/api/v1/objects/{id}/packets',
  id: 'removePackets',
  tag: 'packets',
  summary: 'Removes the packets of an interval in the background; `from` or `to` is required',
  query: ['from', 'to', 'begin', 'end', 'dryRun'],
  answer: { description: 'The removal is stored; it survives a crash', content: { 'application/json': REMOVED } },
  errors: [401, 403, 404, 429],
};
