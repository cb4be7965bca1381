/** Examples of bodies. A new installation accepts them in the order of the document's stores. */
import { DEFAULT_MODEL_ID, ROOT_GROUP_ID, VIEWER_ROLE_ID } from '../core/builtin.js';
import type { Part } from '../platform/http/schema.js';

const LOGIN = { login: 'ada', password: 'correct horse battery' };
const TOKEN = { name: 'Dashboard', expiresIn: '90 days', scopes: ['GET /*'] };
const CIRCLE = { geometry: { type: 'Point', coordinates: [13.4, 52.52] }, radius: 500 };
const SCHEMA = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const SPEED = { id: 'speed', name: 'Speed', type: 'argument', dataType: 'number', unit: 'km/h' };

/** By the title of the entities: the body that creates one, and the body that changes one or many. */
export const EXAMPLES: Readonly<Record<string, { created: Part; changed: Part }>> = {
  ControlObject: {
    created: { id: 'truck-7', name: 'Truck 7', model: DEFAULT_MODEL_ID, config: { plate: 'B-VG 7' } },
    changed: { status: 'in the garage' },
  },
  Model: {
    created: { name: 'Truck', data: { id: 'root', type: 'subsystem', children: [SPEED] } },
    changed: { retentionDays: 90 },
  },
  User: { created: { ...LOGIN, role: VIEWER_ROLE_ID }, changed: { name: 'Ada' } },
  Group: { created: { name: 'North', parent: ROOT_GROUP_ID }, changed: { name: 'South' } },
  Role: {
    created: { name: 'dispatcher', credentials: ['GET /*', 'POST /objects/*/commands/*'] },
    changed: { credentials: ['GET /*'] },
  },
  Token: { created: TOKEN, changed: { name: 'Map' } },
  Geofence: { created: { name: 'Depot', ...CIRCLE }, changed: { radius: 800 } },
  Label: { created: { name: 'refrigerated' }, changed: { name: 'frozen' } },
  View: {
    created: { name: 'Offline trucks', query: 'show=offline&label=truck&view=table', shared: true },
    changed: { name: 'Trucks that are away' },
  },
  Schedule: {
    created: {
      name: 'Mileage of the week',
      report: 'mileage',
      query: { every: '1 day' },
      interval: 'last week',
      cron: '0 6 * * mon',
      tz: 'Europe/Berlin',
      to: { group: ROOT_GROUP_ID },
    },
    changed: { cron: '0 7 * * mon' },
  },
  Handler: {
    created: { name: 'Backend', url: 'https://example.com/vigil' },
    changed: { name: 'Backend of Berlin' },
  },
  Source: {
    created: { id: 'phones', name: 'Phones of drivers', kind: 'osmand', register: true },
    changed: { register: false },
  },
  Rule: {
    created: {
      name: 'Too warm',
      when: { param: 'temperature', op: '>', value: 8 },
      for: '10 min',
      severity: 'critical',
    },
    changed: { active: false },
  },
  Store: { created: { name: 'drivers', schema: SCHEMA }, changed: { shared: true } },
  Entity: { created: { name: 'Ada' }, changed: { name: 'Grace' } },
};
