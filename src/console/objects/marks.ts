/** What charts show beside values: the alarms of an object in an interval, and the thresholds of rules that read a parameter. */
import type { Alarm, Severity } from '../state/alarms.js';
import { SEVERITIES } from '../state/alarms.js';
import { type Entity, type Json, list, type Routes, request } from '../state/api.js';
import { labelsOf } from '../state/by-name.js';
import type { FleetObject } from '../state/fleet.js';
import { may } from '../state/session.js';
import type { IntervalMs } from './days.js';
import { type Band, selectsObject, type Threshold, thresholdsOf } from './thresholds.js';

const MOST_ALARMS = 500;
const MOST_RULES = 1_000;
const ALARM_FIELDS = 'name,severity,status,object,rule,raised,cleared,values';

export type Note = Routes['GET /api/v1/objects/{id}/notes']['answer'][number];

export interface Marks {
  /** In the order in which they were raised. */
  readonly alarms: readonly Alarm[];
  /** By the parameter that they compare. */
  readonly thresholds: ReadonlyMap<string, readonly Threshold[]>;
  /** Of the interval, the newest first. */
  readonly notes: readonly Note[];
}

/** Without what the user may not read. */
export async function fetchMarks(object: FleetObject, interval: IntervalMs): Promise<Marks> {
  const [alarms, thresholds, notes] = await Promise.all([
    may('GET', '/alarms') ? fetchAlarms(object, interval).catch(() => []) : [],
    may('GET', '/rules') ? fetchThresholds(object).catch(() => []) : [],
    may('GET', `/objects/${object._id}/notes`) ? fetchNotes(object, interval).catch(() => []) : [],
  ]);
  const byParameter = new Map<string, Threshold[]>();
  for (const one of thresholds) byParameter.set(one.param, [...(byParameter.get(one.param) ?? []), one]);
  return { alarms, thresholds: byParameter, notes };
}

const fetchNotes = ({ _id: id }: FleetObject, { fromMs, toMs }: IntervalMs): Promise<Note[]> =>
  request('GET /api/v1/objects/{id}/notes', {
    path: { id },
    query: { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() },
  });

async function fetchAlarms(object: FleetObject, { fromMs, toMs }: IntervalMs): Promise<Alarm[]> {
  const query = { where: { object: object._id }, only: ALARM_FIELDS, sortBy: '-raised', limit: MOST_ALARMS };
  const found = await list<Alarm>('/alarms', query);
  return found.filter(({ raised, cleared }) => raised <= toMs && (cleared ?? toMs) >= fromMs).reverse();
}

async function fetchThresholds(object: FleetObject): Promise<Threshold[]> {
  const rules = await list<Entity>('/rules', { only: 'name,active,severity,select,when', limit: MOST_RULES });
  const found = rules.filter(({ active, when }) => active !== false && (when as Json | undefined)?.param !== undefined);
  if (found.length === 0) return [];
  const path = { id: object._id };
  const read = await request('GET /api/v1/objects/{id}', { path, query: { only: ['branch', 'config'] } });
  const { branch, config } = read as { branch?: unknown; config?: unknown };
  const groups = Array.isArray(branch) ? branch.map(String) : [object.group];
  const selected = { keys: [object._id, object.id], groups, model: object.model, labels: labelsOf(object) };
  return found.flatMap((rule) => (selectsObject(rule.select, selected) ? thresholdsOf(rule, config) : []));
}

/** What a chart of a parameter shows: the notes, and the alarms that read it or none. */
export function bandsOf({ alarms, notes }: Pick<Marks, 'alarms' | 'notes'>, path: string): Band[] {
  const shown = alarms
    .filter(({ values }) => {
      const names = Object.keys((values ?? {}) as object);
      return names.length === 0 || names.includes(path);
    })
    .map(({ raised, cleared, severity }) => ({ fromMs: raised, toMs: cleared, severity: severityOf(severity) }));
  return [...notes.map(({ time, to }): Band => ({ fromMs: time, toMs: to ?? time, severity: 'note' })), ...shown];
}

const severityOf = (value: Severity): Severity => (SEVERITIES.includes(value) ? value : 'warning');
