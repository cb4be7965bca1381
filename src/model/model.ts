/** An object's model: the tree of nodes that declares a packet's parameters and the commands an object takes. */
import { z } from 'zod';
import { isObject, type Json, type JsonObject } from './json.js';

const DATA_TYPES = ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]'] as const;
export type DataType = (typeof DATA_TYPES)[number];

// Models are taken as they are exported: docs/reference/stores.md says what a parameter of an unusual name cannot do.
const PARAMETER_NAME = /^[^\s\p{Cc}]{1,64}$/u;
/** A command that a model declares: what would change the meaning of a path or of an MQTT topic is in none. */
export const ACTION_NAME = /^[^\s\p{Cc}\p{Noncharacter_Code_Point}/+#]{1,64}$/u;
/** Any other command. */
export const COMMAND_NAME = /^[A-Za-z0-9_.:-]{1,64}$/;
/** The folder whose parameters `topic` and `payload` are the last MQTT message's. */
const LAST_MESSAGE = 'mqtt-last';

const shape = {
  id: z.string().max(64).nullish(),
  name: z.string().max(256).nullish(),
  type: z.string().max(32).nullish(),
  dataType: z.string().max(64).nullish(),
  unit: z.string().max(64).nullish(),
  reference: z.string().max(1_024).nullish(),
  params: z.record(z.string(), z.unknown()).nullish(),
};
const node: z.ZodType = z
  .lazy(() =>
    z
      .looseObject({ ...shape, children: z.array(node).max(1_000).nullish() })
      .superRefine(({ type, id, dataType }, context) => {
        if (type === 'argument' && dataType != null && !isDataType(dataType)) {
          const message = `an argument is one of ${DATA_TYPES.join(', ')}`;
          context.addIssue({ code: 'custom', path: ['dataType'], message });
        }
        const pattern = type === 'argument' ? PARAMETER_NAME : type === 'action' ? ACTION_NAME : null;
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

const isDataType = (text: string): text is DataType => (DATA_TYPES as readonly string[]).includes(text);

/** What a model declares, found by name. */
export interface Declarations {
  readonly parameters: ReadonlyMap<string, DataType>;
  /** By MQTT topic: the parameters that its messages hold. */
  readonly references: ReadonlyMap<string, readonly Reference[]>;
  /** Parameters that are members of another one: what that is called, and the path within it. */
  readonly members: readonly (Reference & { readonly of: string })[];
  readonly actions: ReadonlyMap<string, JsonObject>;
  /** Whether packets say which MQTT message they come from. */
  readonly keepsLastMessage: boolean;
}

/** The declarations of a model's `data`, wherever in the tree they stand. */
export function declarationsOf(data: unknown): Declarations {
  const parameters = new Map<string, DataType>();
  const references = new Map<string, Reference[]>();
  const actions = new Map<string, JsonObject>();
  let keepsLastMessage = false;
  const visit = (at: unknown, folder: string): void => {
    if (!isObject(at)) return;
    const isOfLast = folder === LAST_MESSAGE && (at.id === 'topic' || at.id === 'payload');
    if (at.type === 'argument' && isOfLast) keepsLastMessage = true;
    else if (at.type === 'argument' && typeof at.id === 'string') {
      if (typeof at.dataType === 'string') parameters.set(at.id, at.dataType as DataType);
      if (typeof at.reference === 'string' && at.reference !== '') addReference(references, at.id, at.reference);
    }
    if (at.type === 'action' && typeof at.id === 'string') actions.set(at.id, isObject(at.params) ? at.params : {});
    if (Array.isArray(at.children))
      for (const child of at.children) visit(child, typeof at.id === 'string' ? at.id : '');
  };
  visit(data, '');
  return { parameters, references, members: membersOf(references, parameters), actions, keepsLastMessage };
}

/** `position.lat` is a member of the parameter `position`, where there is one; otherwise it may be a topic. */
function membersOf(
  references: ReadonlyMap<string, readonly Reference[]>,
  parameters: ReadonlyMap<string, DataType>,
): Declarations['members'] {
  return [...references].flatMap(([text, found]) => {
    const [of = '', ...path] = text.split('.');
    if (path.length === 0 || parameters.get(of) !== 'object') return [];
    return found.filter((one) => one.path.length === 0).map(({ parameter }) => ({ parameter, of, path }));
  });
}

/** What stands there, member by member and place by place in lists; undefined where nothing does. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((at: unknown, name) => {
    if (Array.isArray(at)) return /^\d+$/.test(name) ? at[Number(name)] : undefined;
    return isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }, value);
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

/**
 * The value as what the model declares; undefined where it is of another type. Devices and programs send numbers as text:
 * `"21.30"`.
 */
export function toType(value: Json, type: DataType): Json | undefined {
  if (isOfType(value, type)) return value;
  return type === 'number' ? toNumber(value) : undefined;
}

function toNumber(value: Json): number | undefined {
  const isDecimal = typeof value === 'string' && /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?\s*$/i.test(value);
  const number = isDecimal ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** The nodes of this type, wherever in the tree they stand, without what stands below them. */
export function nodesOf(data: unknown, type: string): JsonObject[] {
  if (!isObject(data)) return [];
  const { children, ...own } = data;
  const below = Array.isArray(children) ? children.flatMap((child) => nodesOf(child, type)) : [];
  return data.type === type ? [own, ...below] : below;
}
