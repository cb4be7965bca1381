/** The error messages for fields of the wrong form. */
import { expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/json.js';
import { builtInStore } from '../../../src/core/stores.js';

const OBJECT = { id: 'a', name: 'A' };
const USER = { login: 'a', password: 'long enough' };
const FENCE = { name: 'Yard' };

test.each<[store: string, fields: object, message: string]>([
  ['objects', { id: 'a' }, 'name: required'],
  ['objects', { ...OBJECT, name: 5 }, 'name: expected text'],
  ['objects', { ...OBJECT, name: null }, 'name: expected text'],
  ['objects', { ...OBJECT, name: '' }, 'name: may not be empty'],
  ['objects', { ...OBJECT, id: '' }, 'id: may not be empty'],
  ['objects', { ...OBJECT, id: '*' }, 'id: may not be *, . or .., 24 hexadecimal digits (an _id) or blank'],
  ['objects', { ...OBJECT, name: 'x'.repeat(257) }, 'name: expected at most 256 characters'],
  ['objects', { ...OBJECT, active: 'yes' }, 'active: expected true or false'],
  ['objects', { ...OBJECT, config: [] }, 'config: expected an object'],
  ['models', { name: 'A', data: { children: {} } }, 'data.children: expected a list'],
  ['models', { name: 'A', retentionDays: 1.5 }, 'retentionDays: expected a whole number'],
  ['models', { name: 'A', retentionDays: -1 }, 'retentionDays: expected at least 0'],
  ['users', { ...USER, password: 'short' }, 'password: expected at least 8 characters'],
  ['users', { ...USER, email: 'nowhere' }, 'email: expected an email address'],
  ['users', { ...USER, email: 5 }, 'email: expected text'],
  ['roles', { name: 'A', credentials: 'GET /*' }, 'credentials: expected a list'],
  ['roles', { name: 'A', credentials: [5] }, 'credentials.0: expected text'],
  ['geofences', { ...FENCE, radius: 0 }, 'radius: expected more than 0'],
  ['geofences', { ...FENCE, geometry: 'x' }, 'geometry: expected an object'],
  [
    ...(['geofences', { ...FENCE, geometry: { type: 'Circle' } }] as const),
    'geometry.type: expected one of Point, LineString, Polygon, MultiPolygon',
  ],
  [
    ...(['geofences', { ...FENCE, geometry: { type: 'Point', coordinates: ['13', 52] } }] as const),
    'geometry.coordinates: expected a position: longitude, latitude, and perhaps a height',
  ],
  [
    ...(['geofences', { ...FENCE, geometry: { type: 'Point', coordinates: [190, 52] } }] as const),
    'geometry.coordinates.0: expected at most 180',
  ],
  [
    ...(['geofences', { ...FENCE, geometry: { type: 'LineString', coordinates: [] } }] as const),
    'geometry.coordinates: expected at least 2 items',
  ],
])('says what is wrong in %s: %j', (store, fields, message) => {
  expect(() => builtInStore(store).checkNew(fields as JsonObject)).toThrow(new Error(message));
});
