/** The states and thresholds of a parameter, as a model may declare them. */
import { z } from 'zod';
import { LIMITS } from './limits.js';
import { TONES } from './tones.js';

const LABEL = z.string().min(1).max(LIMITS.meaningLabelCharacters).nullish();
const TONE = z.enum(TONES, { error: `expected one of ${TONES.join(', ')}` });
const VALUE = z.union([z.boolean(), z.number(), z.string().max(LIMITS.stateValueCharacters)], {
  error: 'expected true, false, a number or text',
});

const STATES = z
  .array(z.strictObject({ value: VALUE, label: LABEL, tone: TONE.nullish() }))
  .max(LIMITS.parameterStates);
const THRESHOLDS = z
  .array(z.strictObject({ from: z.number().nullish(), to: z.number().nullish(), tone: TONE, label: LABEL }))
  .max(LIMITS.parameterThresholds);

type Issues = { readonly path: readonly PropertyKey[]; readonly message: string }[];

const STATE_TYPES = ['number', 'boolean', 'string'];

/** What is wrong with the states and thresholds of a parameter, and where. */
export function findMeaningFaults(node: {
  readonly dataType?: unknown;
  readonly states?: unknown;
  readonly thresholds?: unknown;
}): Issues {
  return [...findStateFaults(node.states, node.dataType), ...findThresholdFaults(node.thresholds, node.dataType)];
}

function findStateFaults(declared: unknown, dataType: unknown): Issues {
  if (declared == null) return [];
  const { data: states, error } = STATES.safeParse(declared);
  if (error) return within('states', error.issues);
  const isTyped = typeof dataType === 'string';
  if (states.length > 0 && isTyped && !STATE_TYPES.includes(dataType)) {
    return [{ path: ['states'], message: 'only numbers, booleans and texts have states' }];
  }
  return states.flatMap(({ value }, index) => {
    const path = ['states', index, 'value'];
    if (isTyped && typeof value !== dataType) return [{ path, message: `expected a ${dataType}, as dataType says` }];
    const isKnown = states.findIndex((one) => one.value === value) < index;
    return isKnown ? [{ path, message: 'this value has a state already' }] : [];
  });
}

function findThresholdFaults(declared: unknown, dataType: unknown): Issues {
  if (declared == null) return [];
  const { data: thresholds, error } = THRESHOLDS.safeParse(declared);
  if (error) return within('thresholds', error.issues);
  if (thresholds.length > 0 && typeof dataType === 'string' && dataType !== 'number') {
    return [{ path: ['thresholds'], message: 'only numbers have thresholds' }];
  }
  return thresholds.flatMap(({ from, to }, index) => {
    const path = ['thresholds', index];
    if (from == null && to == null) return [{ path: [...path, 'from'], message: 'expected from, to or both' }];
    const isEmpty = from != null && to != null && from >= to;
    return isEmpty ? [{ path: [...path, 'to'], message: 'expected more than from' }] : [];
  });
}

const within = (name: string, issues: readonly z.core.$ZodIssue[]): Issues =>
  issues.map(({ path, message }) => ({ path: [name, ...path], message }));

/** In the document of the API; nodes that are no parameters may have anything there, as other platforms export them. */
const described = (schema: z.ZodType, description: string) => {
  const { $schema: _, ...shape } = z.toJSONSchema(schema, { io: 'input' });
  return z
    .unknown()
    .optional()
    .meta({ description, ...shape });
};

export const MEANINGS = {
  states: described(STATES, 'What values of an argument mean: a label in place of the value, and a tone'),
  thresholds: described(
    THRESHOLDS,
    'What numbers of an argument mean: the first that contains a number, `from` on and below `to`, gives it a tone',
  ),
};
