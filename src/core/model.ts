/** Models: trees of nodes that declare the parameters of packets and the commands of objects. */
import { z } from 'zod';
import { isRounded } from './exact-json.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { findMeaningFaults, MEANINGS } from './model-meanings.js';

const DATA_TYPES = ['number', 'boolean', 'string', 'object', 'number[]', 'boolean[]', 'string[]'] as const;
export type DataType = (typeof DATA_TYPES)[number];

// Models of other platforms are accepted as exported. docs/reference/stores.md names what unusual parameter names cannot do.
const PARAMETER_NAME = /^[^\s\p{Cc}]{1,64}$/u;
/** The name of a declared command: without characters that change the meaning of a path or of an MQTT topic, not `.` or `..`. */
const ACTION_NAME = /^(?!\.{1,2}$)[^\s\p{Cc}\p{Noncharacter_Code_Point}/+#]{1,64}$/u;
/** The name of an undeclared command, not `.` or `..`, which browsers remove from paths. */
export const COMMAND_NAME = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,64}$/;
/** The folder whose parameters `topic` and `payload` hold the last MQTT message. */
const LAST_MESSAGE = 'mqtt-last';

const shape = {
  id: z.string().max(64).nullish(),
  name: z.string().max(256).nullish(),
  type: z.string().max(32).nullish(),
  // Other platforms put anything here; only that of an argument has a meaning.
  dataType: z.unknown().optional(),
  unit: z.string().max(64).nullish(),
  reference: z.string().max(1_024).nullish(),
  // An argument is calculated by it (core/formula.ts).
  formula: z.unknown().optional().meta({ description: 'An expression in CEL, by which an argument is calculated' }),
  ...MEANINGS,
  params: z.record(z.string(), z.unknown()).nullish(),
};
const node: z.ZodType = z
  .lazy(() =>
    z
      .looseObject({ ...shape, children: z.array(node).max(1_000).nullish() })
      .superRefine(({ type, id, dataType, states, thresholds }, context) => {
        if (type === 'argument' && dataType != null && !isDataType(dataType)) {
          const message = `an argument is one of ${DATA_TYPES.join(', ')}`;
          context.addIssue({ code: 'custom', path: ['dataType'], message });
        }
        const faults = type === 'argument' ? findMeaningFaults({ dataType, states, thresholds }) : [];
        for (const { path, message } of faults) context.addIssue({ code: 'custom', path: [...path], message });
        const pattern = type === 'argument' ? PARAMETER_NAME : type === 'action' ? ACTION_NAME : null;
        if (pattern === null || (typeof id === 'string' && pattern.test(id))) return;
        const message = `an ${type} needs an id of the form ${pattern.source}`;
        context.addIssue({ code: 'custom', path: ['id'], message });
      }),
  )
  .meta({ id: 'ModelNode' });

/** The tree: `argument` declares a parameter of a packet, `action` a command, `subsystem` is a folder. */
export const modelData = z.looseObject({ ...shape, children: z.array(node).max(1_000).nullish() });

/** The path of a parameter's value in a published message: member names and list indexes, from the top down. */
export interface Reference {
  readonly parameter: string;
  readonly path: readonly string[];
}

export const isDataType = (value: unknown): value is DataType => (DATA_TYPES as readonly unknown[]).includes(value);

/** What formulas have added to a packet. */
export interface Calculated {
  readonly parameters: readonly string[];
  /** Reports that they have no result after all. */
  fail(reason: string): void;
}

/** The declarations of a model, by name. */
export interface Declarations {
  readonly parameters: ReadonlyMap<string, DataType>;
  /** By MQTT topic: the parameters in its messages. */
  readonly references: ReadonlyMap<string, readonly Reference[]>;
  /** Parameters that are members of the parameter `of`, with the path within it. */
  readonly members: readonly (Reference & { readonly of: string })[];
  readonly actions: ReadonlyMap<string, JsonObject>;
  /** Whether packets include the MQTT message they come from. */
  readonly keepsLastMessage: boolean;
  /** How far the time of a packet may be ahead. */
  readonly aheadMs: number;
  /** Adds what is calculated to the parameters of a packet; null where there is nothing. */
  readonly calculate: ((parameters: JsonObject) => Calculated) | null;
}

/** Collects the declarations of a model's `data` from all levels of the tree. */
export function declarationsOf(
  data: unknown,
  aheadMs: number = LIMITS.packetAheadMs,
  calculate: Declarations['calculate'] = null,
): Declarations {
  const parameters = new Map<string, DataType>();
  const references = new Map<string, Reference[]>();
  const actions = new Map<string, JsonObject>();
  let keepsLastMessage = false;
  const visit = (current: unknown, folder: string): void => {
    if (!isObject(current)) return;
    const { type, id, dataType, reference, params, children } = current;
    const isOfLast = folder === LAST_MESSAGE && (id === 'topic' || id === 'payload');
    if (type === 'argument' && isOfLast) keepsLastMessage = true;
    else if (type === 'argument' && typeof id === 'string') {
      if (typeof dataType === 'string') parameters.set(id, dataType as DataType);
      if (typeof reference === 'string' && reference !== '') addReference(references, id, reference);
    }
    if (type === 'action' && typeof id === 'string') actions.set(id, isObject(params) ? params : {});
    if (Array.isArray(children)) for (const child of children) visit(child, typeof id === 'string' ? id : '');
  };
  visit(data, '');
  const members = membersOf(references, parameters);
  return { parameters, references, members, actions, keepsLastMessage, aheadMs, calculate };
}

/** `position.lat` is a member of the parameter `position` if the model declares one; otherwise it may be a topic. */
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

/** Returns the value at a path of member names and list indexes; undefined when there is none. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((current: unknown, name) => {
    if (Array.isArray(current)) return /^\d+$/.test(name) ? current[Number(name)] : undefined;
    return isObject(current) && Object.hasOwn(current, name) ? current[name] : undefined;
  }, value);
}

// `topic`, or `topic#path.to.value`: a topic name contains no #.
function addReference(references: Map<string, Reference[]>, parameter: string, text: string): void {
  const [topic = '', path = ''] = text.split('#', 2);
  const reference = { parameter, path: path.split('.').filter(Boolean) };
  references.set(topic, [...(references.get(topic) ?? []), reference]);
}

/** Whether a value has a declared type; null always has, because it means an unknown value. */
export function isOfType(value: unknown, type: DataType): boolean {
  if (value === null) return true;
  if (type.endsWith('[]')) {
    const item = type.slice(0, -2) as DataType;
    return Array.isArray(value) && value.every((one) => one !== null && isOfType(one, item));
  }
  return type === 'object' ? isObject(value) : typeof value === type;
}

/**
 * Converts a value to its declared type; undefined when it has another type. Text is accepted as a number, because devices send
 * `"21.30"`, but not an integer that a number cannot hold, and numbers and text as a boolean.
 */
export function toType(value: Json, type: DataType): Json | undefined {
  if (isOfType(value, type)) return value;
  if (type === 'number') return toNumber(value);
  return type === 'boolean' ? toBoolean(value) : undefined;
}

const SWITCH: ReadonlyMap<string, boolean> = new Map([
  ['on', true],
  ['true', true],
  ['1', true],
  ['off', false],
  ['false', false],
  ['0', false],
]);

/** Some devices send 1, "true" or "ON" for a boolean. Undefined for any other value. */
export function toBoolean(value: Json): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'object') return undefined;
  return SWITCH.get(String(value).trim().toLowerCase());
}

function toNumber(value: Json): number | undefined {
  const isDecimal = typeof value === 'string' && /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?\s*$/i.test(value);
  const number = isDecimal && !isRounded(value.trim()) ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** The nodes of this type at all levels of the tree, without their children. */
export function nodesOf(data: unknown, type: string): JsonObject[] {
  if (!isObject(data)) return [];
  const { children, ...own } = data;
  const below = Array.isArray(children) ? children.flatMap((child) => nodesOf(child, type)) : [];
  return data.type === type ? [own, ...below] : below;
}
