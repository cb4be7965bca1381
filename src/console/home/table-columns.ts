/** The columns of the table of objects: what each says of an object, as people and as spreadsheets read it, and by what it is ordered. */
import { activityOf } from '../state/activity.js';
import { SEVERITIES, worstByObject } from '../state/alarms.js';
import { labelsOf, sortKeyOf } from '../state/by-name.js';
import { nowMs } from '../state/clock.js';
import { type FleetObject, objects } from '../state/fleet.js';
import { nameOf } from '../state/references.js';
import { formatAge, t } from '../text/language.js';
import { type Parameter, parameterOf, parametersOfFleet, toColumn } from './columns.js';
import { alarmText } from './sentence.js';
import { formatValue, knownModel, modelOf, type Shown, toShown } from './values.js';

type Cell = string | number | boolean | null;

export interface Column {
  readonly name: string;
  readonly title: string;
  readonly isNumber: boolean;
  readonly text: (object: FleetObject) => string;
  /** What the value means. */
  readonly meaning?: (object: FleetObject) => Shown | undefined;
  /** For spreadsheets. */
  readonly cell: (object: FleetObject) => Cell;
  /** By this objects are ordered; those without it come last. */
  readonly key: (object: FleetObject) => string | number | null;
}

export const OWN_NAMES = ['name', 'id', 'state', 'alarm', 'seen', 'group', 'model', 'labels', 'status'] as const;
type OwnName = (typeof OWN_NAMES)[number];

/** Beside the parameters that most objects have. */
const USUAL_NAMES: readonly OwnName[] = ['name', 'state', 'alarm', 'seen'];
const USUAL_PARAMETERS = 5;

type About = Pick<Column, 'text'> & Partial<Pick<Column, 'cell' | 'key'>>;

const stateOf = (object: FleetObject): string => {
  const activity = activityOf(object, nowMs.value);
  if (activity === 'never') return t('state.never');
  if (activity === 'reporting') return t('state.online');
  return t(`filter.${activity}`);
};

const alarmOf = ({ _id }: FleetObject) => worstByObject.value.get(_id);

/** The object of a list may be older than what is known of it. */
const timeOf = ({ _id }: FleetObject): number | null => objects.get(_id)?.state?.time ?? null;

const OWN: Readonly<Record<OwnName, About>> = {
  name: { text: ({ name }) => name },
  id: { text: ({ id }) => id },
  state: { text: stateOf },
  alarm: {
    text: (object) => {
      const alarm = alarmOf(object);
      return alarm === undefined ? '' : alarmText(alarm);
    },
    cell: (object) => alarmOf(object)?.name ?? null,
    key: (object) => {
      const alarm = alarmOf(object);
      return alarm === undefined ? null : SEVERITIES.indexOf(alarm.severity);
    },
  },
  seen: {
    text: (object) => {
      const timeMs = timeOf(object);
      return timeMs === null ? '' : formatAge(timeMs, nowMs.value);
    },
    cell: (object) => {
      const timeMs = timeOf(object);
      return timeMs === null ? null : new Date(timeMs).toISOString();
    },
    // The last seen first.
    key: (object) => {
      const timeMs = timeOf(object);
      return timeMs === null ? null : -timeMs;
    },
  },
  group: { text: ({ group }) => nameOf('groups', group) },
  model: { text: ({ model }) => knownModel(model)?.name ?? nameOf('models', model) },
  labels: { text: (object) => labelsOf(object).join(', ') },
  status: { text: ({ status = '' }) => status },
};

function toOwn(name: OwnName): Column {
  const { text, cell, key } = OWN[name];
  return {
    name,
    title: t(`table.${name}`),
    isNumber: false,
    text,
    cell: cell ?? ((object) => text(object) || null),
    key: key ?? ((object) => sortKeyOf(text(object)) || null),
  };
}

function toParameter({ name, label, unit, isNumber }: Parameter): Column {
  const sentBy = ({ _id }: FleetObject): unknown => objects.get(_id)?.state?.[name];
  const shownOf = (object: FleetObject): Shown | undefined => {
    const value = sentBy(object);
    return value === undefined ? undefined : toShown(name, value, modelOf(object._id, object.model));
  };
  return {
    name: toColumn(name),
    title: unit === '' ? label : `${label} (${unit})`,
    isNumber,
    text: (object) => {
      const shown = shownOf(object);
      if (shown === undefined) return '';
      return shown.unit === unit ? shown.text : `${shown.text} ${shown.unit}`;
    },
    meaning: shownOf,
    cell: (object) => toCell(sentBy(object)),
    key: (object) => toKey(sentBy(object)),
  };
}

function toCell(value: unknown): Cell {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string') return value;
  return JSON.stringify(value);
}

function toKey(value: unknown): string | number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return value;
  return typeof value === 'boolean' ? Number(value) : sortKeyOf(formatValue(value));
}

const isOwnName = (name: string): name is OwnName => OWN_NAMES.some((one) => one === name);

export const ownTitles = (): { column: string; name: string; label: string }[] =>
  OWN_NAMES.map((column) => ({ column, name: t(`table.${column}`), label: t(`table.${column}`) }));

/** Those that are shown as long as nobody chooses: with the parameters that most objects send. */
export function usualColumns(parameters: readonly Parameter[]): string[] {
  const most = [...parameters].sort((one, other) => other.count - one.count).slice(0, USUAL_PARAMETERS);
  return [...USUAL_NAMES, ...most.map(({ name }) => toColumn(name))];
}

/** The columns of these names; a parameter that no object sends yet is a column, too. */
export function columnsOf(names: readonly string[], parameters: readonly Parameter[] = parametersOfFleet()): Column[] {
  return names.flatMap((name) => {
    if (isOwnName(name)) return [toOwn(name)];
    const parameter = parameterOf(name);
    if (parameter === null) return [];
    const known = parameters.find((one) => one.name === parameter);
    return [toParameter(known ?? { name: parameter, label: parameter, unit: '', isNumber: false, count: 0 })];
  });
}

/** By the column that the address names, `-name` for the other direction; without one, as they come. */
export function sortObjects(
  rows: readonly FleetObject[],
  by: string | null,
  columns: readonly Column[],
): readonly FleetObject[] {
  const isDown = by?.startsWith('-') === true;
  const column = columns.find(({ name }) => name === (isDown ? by?.slice(1) : by));
  if (column === undefined) return rows;
  const keyed = rows.map((object) => ({ object, key: column.key(object) }));
  const direction = isDown ? -1 : 1;
  keyed.sort(({ key: one }, { key: other }) => {
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    if (typeof one !== typeof other) return typeof one === 'number' ? -1 : 1;
    if (one === other) return 0;
    return one < other ? -direction : direction;
  });
  return keyed.map(({ object }) => object);
}
