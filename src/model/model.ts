/** An object's model: the tree of nodes that declares a packet's parameters and the commands an object takes. */
import { z } from 'zod';
import { isObject, type JsonObject } from './json.js';

const DATA_TYPES = ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]'] as const;
export type DataType = (typeof DATA_TYPES)[number];

const PARAMETER_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
export const COMMAND_NAME = /^[A-Za-z0-9_.:-]{1,64}$/;

const shape = {
  id: z.string().max(64).nullish(),
  name: z.string().max(256).nullish(),
  type: z.string().max(32).nullish(),
  dataType: z.enum(DATA_TYPES).nullish(),
  unit: z.string().max(32).nullish(),
  reference: z.string().max(1_024).nullish(),
  params: z.record(z.string(), z.unknown()).nullish(),
};
const node: z.ZodType = z
  .lazy(() =>
    z.looseObject({ ...shape, children: z.array(node).max(1_000).nullish() }).superRefine(({ type, id }, context) => {
      const pattern = type === 'argument' ? PARAMETER_NAME : type === 'action' ? COMMAND_NAME : null;
      if (pattern === null || (typeof id === 'string' && pattern.test(id))) return;
      const message = `an ${type} needs an id of the form ${pattern.source}`;
      context.addIssue({ code: 'custom', path: ['id'], message });
    }),
  )
  .meta({ id: 'ModelNode' });

/** The tree: `argument` declares a parameter of a packet, `action` a command, `subsystem` is a folder. */
export const modelData = z.looseObject({ ...shape, children: z.array(node).max(1_000).nullish() });

/** Where a parameter's value stands in what a device publishes: members and places in lists, from the top down. */
export interface Reference {
  readonly parameter: string;
  readonly path: readonly string[];
}

/** What a model declares, found by name. */
export interface Declarations {
  readonly parameters: ReadonlyMap<string, DataType>;
  /** By MQTT topic: the parameters that its messages hold. */
  readonly references: ReadonlyMap<string, readonly Reference[]>;
  readonly actions: ReadonlyMap<string, JsonObject>;
}

/** The declarations of a model's `data`, wherever in the tree they stand. */
export function declarationsOf(data: unknown): Declarations {
  const parameters = new Map<string, DataType>();
  const references = new Map<string, Reference[]>();
  const actions = new Map<string, JsonObject>();
  const visit = (at: unknown): void => {
    if (!isObject(at)) return;
    if (at.type === 'argument' && typeof at.id === 'string') {
      if (typeof at.dataType === 'string') parameters.set(at.id, at.dataType as DataType);
      if (typeof at.reference === 'string' && at.reference !== '') addReference(references, at.id, at.reference);
    }
    if (at.type === 'action' && typeof at.id === 'string') actions.set(at.id, isObject(at.params) ? at.params : {});
    if (Array.isArray(at.children)) at.children.forEach(visit);
  };
  visit(data);
  return { parameters, references, actions };
}

// `topic`, or `topic#path.to.value`: no topic that is published to has a #.
function addReference(references: Map<string, Reference[]>, parameter: string, text: string): void {
  const [topic = '', path = ''] = text.split('#', 2);
  const reference = { parameter, path: path.split('.').filter(Boolean) };
  references.set(topic, [...(references.get(topic) ?? []), reference]);
}

/** Whether a value is of a declared type; null always is, it says that nothing is known. */
export function isOfType(value: unknown, type: DataType): boolean {
  if (value === null) return true;
  if (type.endsWith('[]')) {
    const item = type.slice(0, -2) as DataType;
    return Array.isArray(value) && value.every((one) => one !== null && isOfType(one, item));
  }
  return type === 'object' ? isObject(value) : typeof value === type;
}
