/**
 * Charges expressions for what they do: each operation of a checked program by the size of what it is given, before it runs. It uses
 * members of the library's nodes that are not part of its types: `meta`, and `handle`, which runs an operator or a function.
 * test/unit/alarms/expression-cost.test.ts tries every one of these. Pure.
 */
import { LIMITS } from '../limits.js';

export const TOO_MANY_STEPS = 'takes too many steps';
/** Always the same, because macros go on after an error: a new one for each of their items would take long. */
const tooManySteps = new Error(TOO_MANY_STEPS);

/** The steps that an evaluation may take. */
export class Steps {
  readonly #most: number;
  #left: number;

  constructor(most: number = LIMITS.expressionSteps) {
    this.#most = most;
    this.#left = most;
  }

  /** How many were taken; where they are spent, how many there were. */
  get taken(): number {
    return this.#most - Math.max(0, this.#left);
  }

  get areSpent(): boolean {
    return this.#left < 0;
  }

  /** Throws when they are spent, and whenever it is called after that. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw tooManySteps;
  }
}

/** Those of the evaluation that is running. */
let current = new Steps();

/** Charges the evaluation that is running. */
export const METER = { spend: (steps: number): void => current.spend(steps) };
const { spend } = METER;

/** Evaluates, for `cost` steps at least. Throws if the steps are spent, also where the expression has a result in spite of it, such as `… || true`. */
export function withSteps<T>(steps: Steps, cost: number, evaluate: () => T): T {
  current = steps;
  spend(cost);
  const result = evaluate();
  // Throws where they are.
  spend(0);
  return result;
}

type Evaluate = (evaluator: unknown, node: unknown, context: unknown) => unknown;
type Handle = (first: unknown, second: unknown, third: unknown, fourth: unknown) => unknown;

/** A node as the library has checked it. A macro is run by its `alternate`, or by a function of its own. */
interface CheckedNode {
  readonly op: string;
  readonly args: unknown;
  readonly checkedType?: unknown;
  readonly meta: {
    readonly evaluate: Evaluate;
    readonly alternate?: CheckedNode;
    readonly macro?: { evaluate: Evaluate };
  };
  handle?: Handle;
  setMeta(key: 'evaluate', value: Evaluate): void;
}

/** What a macro over items is. */
interface Comprehension {
  /** Runs for each item. */
  readonly step: CheckedNode;
}

const isNode = (value: unknown): value is CheckedNode =>
  typeof value === 'object' && value !== null && 'op' in value && 'meta' in value;

/**
 * Makes a checked program, which has not run yet, charge for what its operators and functions do. Returns the steps to charge before
 * it runs, for its nodes themselves: each runs once at most, or once for each item of a macro.
 */
export function meter(program: unknown): number {
  const done = new Set<CheckedNode>();
  const visit = (node: CheckedNode): void => {
    if (done.has(node)) return;
    done.add(node);
    partsOf(node).forEach(visit);
    const { op, meta } = node;
    // `has` does not run the members that it reads.
    const isRun = meta.alternate === undefined && meta.macro === undefined && node.checkedType !== undefined;
    if (isRun) chargeNode(node, op === 'comprehension' ? iterationOf(node.args as Comprehension) : CHARGES[op]);
  };
  visit(program as CheckedNode);
  return done.size * LIMITS.expressionNodeSteps;
}

/** The nodes that a node runs. */
function partsOf(node: CheckedNode): CheckedNode[] {
  const { alternate, macro } = node.meta;
  if (alternate !== undefined) return [alternate];
  if (macro !== undefined) return nodesAmong(Object.values(macro));
  const { args } = node;
  if (isNode(args)) return [args];
  return typeof args === 'object' && args !== null ? nodesAmong(Object.values(args)) : [];
}

const nodesAmong = (values: readonly unknown[]): CheckedNode[] => values.flat(2).filter(isNode);

/** An error is caught in the left part of `||` and `&&`, and in each step of a macro; then the rest is evaluated. */
function chargeErrors(node: CheckedNode): void {
  const { alternate, macro, evaluate } = node.meta;
  if (alternate !== undefined) chargeErrors(alternate);
  else if (macro !== undefined) macro.evaluate = charged(macro.evaluate);
  else node.setMeta('evaluate', charged(evaluate));
}

const charged =
  (evaluate: Evaluate): Evaluate =>
  (evaluator, node, context) => {
    try {
      return evaluate(evaluator, node, context);
    } catch (error) {
      spend(LIMITS.expressionErrorSteps);
      throw error;
    }
  };

/** Charges, or gives the result where the library would do too much for it; otherwise undefined. */
type Charge = (first: unknown, second: unknown, name: string) => boolean | undefined;

function chargeNode(node: CheckedNode, charge: Charge | undefined): void {
  const { op, handle } = node;
  if (op === '||' || op === '&&') chargeErrors((node.args as CheckedNode[])[0] as CheckedNode);
  if (op === 'comprehension') chargeErrors((node.args as Comprehension).step);
  if (charge === undefined) return;
  if (handle === undefined) throw new Error(`the library runs ${op} in another way`);
  const name = String((node.args as unknown[])[0]);
  node.handle = (first, second, third, fourth) => charge(first, second, name) ?? handle(first, second, third, fourth);
}

const chargeKey: Charge = (_of, key) => {
  spend(typeof key === 'string' ? key.length : 0);
  return undefined;
};

const chargeArithmetic: Charge = (first, second) => {
  if (typeof first === 'number' && typeof second === 'number') return undefined;
  spend(sizeOf(first) + sizeOf(second));
  checkForm(first);
  checkForm(second);
  return undefined;
};

const chargeComparison: Charge = (first, second) => {
  if (typeof first === 'number' && typeof second === 'number') return undefined;
  spendComparison(first, second);
  checkForm(first);
  checkForm(second);
  return undefined;
};

/** What is compared with null needs no form. */
const equality =
  (isEqual: boolean): Charge =>
  (first, second, name) =>
    first === null || second === null ? (first === second) === isEqual : chargeComparison(first, second, name);

const chargeMembership: Charge = (value, container) => {
  if (typeof value === 'string' && isPlainObject(container)) {
    spend(value.length);
    return Object.hasOwn(container, value) && container[value] !== undefined;
  }
  spend(sizeOf(container));
  if (Array.isArray(container)) for (const item of container) spendComparison(value, item);
  checkForm(value);
  checkForm(container);
  return undefined;
};

const chargeCall: Charge = (given, _other, name) => {
  const args = given as readonly unknown[];
  spend((FUNCTIONS[name] ?? sumOf)(args));
  args.forEach(checkForm);
  return undefined;
};

/** For all items in advance, because a macro goes through the rest of them also when the steps are spent. */
function iterationOf({ step }: Comprehension): Charge {
  const nodes = new Set<CheckedNode>();
  const count = (node: CheckedNode): void => {
    if (nodes.has(node)) return;
    nodes.add(node);
    partsOf(node).forEach(count);
  };
  count(step);
  return (items) => {
    const names = isPlainObject(items) ? Object.keys(items) : [];
    spend((Array.isArray(items) ? items : names).length * nodes.size * LIMITS.expressionNodeSteps);
    return undefined;
  };
}

const CHARGES: Readonly<Record<string, Charge>> = {
  '+': chargeArithmetic,
  '-': chargeArithmetic,
  '*': chargeArithmetic,
  '/': chargeArithmetic,
  '%': chargeArithmetic,
  '==': equality(true),
  '!=': equality(false),
  '<': chargeComparison,
  '<=': chargeComparison,
  '>': chargeComparison,
  '>=': chargeComparison,
  in: chargeMembership,
  '[]': chargeKey,
  call: chargeCall,
  rcall: chargeCall,
};

type Cost = (args: readonly unknown[]) => number;

const sumOf: Cost = (args) => args.reduce<number>((sum, one) => sum + sizeOf(one), 0);

/** A search may compare the whole of what is sought at each place. */
const searching: Cost = ([text, sought]) =>
  sizeOf(text) * (1 + Math.floor(sizeOf(sought) / LIMITS.expressionComparedCharacters));

/** In a time zone: a format of dates is made for each call. */
const inZone: Cost = (args) => sumOf(args) + (args.length > 1 ? LIMITS.expressionZoneSteps : 0);

/** Of the functions whose cost is not the size of what they are given. */
const FUNCTIONS: Readonly<Record<string, Cost>> = {
  dyn: () => 0,
  type: () => 0,
  size: ([value]) => (Array.isArray(value) || value instanceof Uint8Array ? 0 : sizeOf(value)),
  contains: searching,
  indexOf: searching,
  lastIndexOf: searching,
  split: (args) => searching(args) + sizeOf(args[0]),
  join: ([list, separator]) =>
    Array.isArray(list) ? list.reduce<number>((sum, one) => sum + sizeOf(one) + sizeOf(separator) + 1, 0) : 0,
  // The library tries each place of the text, and multiplies numbers of any length.
  duration: ([text]) => sizeOf(text) ** 2,
  json: (args) => LIMITS.expressionParsedSteps * sumOf(args),
  getDate: inZone,
  getDayOfMonth: inZone,
  getDayOfWeek: inZone,
  getDayOfYear: inZone,
  getFullYear: inZone,
  getHours: inZone,
  getMinutes: inZone,
  getMonth: inZone,
  getSeconds: inZone,
};

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const of: unknown = value.constructor;
  return of === Object || of === undefined;
}

/** The characters, bytes or items of a value, or its members, each of which takes longer; without what is in them. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  return isPlainObject(value) ? Object.keys(value).length * LIMITS.expressionMemberSteps : 0;
}

function spendComparison(first: unknown, second: unknown): void {
  spend(1);
  if (first === second && typeof first !== 'string') return;
  if (typeof first === 'string' && typeof second === 'string') spend(Math.min(first.length, second.length));
  else if (isContainer(first) && isContainer(second)) {
    spendWhole(first);
    spendWhole(second);
  }
}

const isContainer = (value: unknown): value is object =>
  Array.isArray(value) || value instanceof Uint8Array || isPlainObject(value);

function spendWhole(value: unknown): void {
  spend(1 + sizeOf(value));
  if (Array.isArray(value)) for (const item of value) spendWhole(item);
  else if (isPlainObject(value)) for (const member of Object.values(value)) spendWhole(member);
}

/** The library never forgets a form that it met, such as "list of lists of texts": there must be few. */
function checkForm(value: unknown): void {
  let inner = value;
  for (let depth = 0; Array.isArray(inner) || isPlainObject(inner); depth++) {
    if (depth === LIMITS.expressionNesting) throw new Error('a value is nested too deep for this operation');
    inner = Array.isArray(inner) ? inner[0] : firstOf(inner);
  }
}

function firstOf(object: Record<string, unknown>): unknown {
  for (const name in object) return object[name];
  return undefined;
}
