/** The objects of a rule, and what they send, as far as the page knows them. */
import { type Action, type Argument, modelOf } from '../home/values.js';
import type { Json } from '../state/api.js';
import { labelsOf, ordered } from '../state/by-name.js';
import { type FleetObject, parametersOf } from '../state/fleet.js';
import { groupsBelow, namedOf } from '../state/references.js';
import { isObject } from './draft.js';

/** Objects whose models and packets are looked at for names. */
const MOST_LOOKED_AT = 200;

/** Those that meet every member of the selection, by name. */
export function objectsOf(select: unknown): FleetObject[] {
  const { objects: keys, group, model, labels } = isObject(select) ? select : ({} as Json);
  const named = Array.isArray(keys) ? new Set(keys.map(String)) : null;
  const groups = typeof group === 'string' ? groupsBelow(group, namedOf('groups')) : null;
  const texts = Array.isArray(labels) ? new Set(labels.map(String)) : null;
  return ordered.value.filter(
    (object) =>
      (named === null || named.has(object._id) || named.has(object.id)) &&
      (groups === null || groups.has(object.group)) &&
      (typeof model !== 'string' || object.model === model) &&
      (texts === null || labelsOf(object).some((label) => texts.has(label))),
  );
}

/** How a list of objects names one. */
export const titled = (id: string, name: string): string => (name === id ? name : `${name} (${id})`);

/** The labels that objects have. */
export const knownLabels = (): string[] => [...new Set(ordered.value.flatMap(labelsOf))].sort();

/** The parameters of the objects: those of their models, with their names, and those of their last packets. */
export function parametersFor(found: readonly FleetObject[]): (readonly [string, string])[] {
  const names = new Map<string, string>();
  for (const object of found.slice(0, MOST_LOOKED_AT)) {
    for (const [name, value] of object.state ? parametersOf(object.state) : []) addParameter(names, name, value);
    for (const { id, name, unit } of declaredBy(object)) names.set(id, [name, unit].filter(Boolean).join(', '));
  }
  return [...names].sort(([one], [other]) => one.localeCompare(other));
}

const declaredBy = ({ _id, model }: FleetObject): readonly Argument[] => modelOf(_id, model)?._arguments ?? [];

function addParameter(names: Map<string, string>, name: string, value: unknown): void {
  if (!isObject(value)) names.set(name, '');
  else for (const [below, one] of Object.entries(value)) addParameter(names, `${name}.${below}`, one);
}

/** The commands that their models declare. */
export function commandsFor(found: readonly FleetObject[]): (readonly [string, string])[] {
  const actions = found
    .slice(0, MOST_LOOKED_AT)
    .flatMap(({ _id, model }): readonly Action[] => modelOf(_id, model)?._actions ?? []);
  return [...new Map(actions.map(({ id, name = '' }) => [id, name] as const))];
}
