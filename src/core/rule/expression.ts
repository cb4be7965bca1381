/**
 * Expressions in CEL (https://cel.dev). Only this file and `metering.ts` know the library. Their cost is bounded: size and depth, no
 * macro within another, macros only over packets of few values, patterns of RE2, and a budget of steps for all that they do. Pure.
 */
import { type ASTNode, Environment, ParseError } from '@marcbachmann/cel-js';
import { badRequest } from '../errors.js';
import type { Json, JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { patternSize } from '../schema/pattern.js';
import { METER, meter, Steps, withSteps } from './metering.js';
import { Patterns } from './patterns.js';

/** What an expression can read. */
export interface ExpressionInput {
  /** The packet. */
  readonly p: JsonObject;
  /** The values of parameters before the packet. */
  readonly last: JsonObject;
  readonly object: JsonObject;
}

export interface Expression {
  readonly text: string;
  /** The members of `p` that it reads. */
  readonly params: readonly string[];
  /** Whether its result may depend on this member of `p`, or on the value before: `"online" in p` reads all members. */
  mayDependOn(name: string): boolean;
  /** Whether it reads the values before the packet, or the object. */
  readonly readsLast: boolean;
  readonly readsObject: boolean;
  /** Its result; null where it has none: a member is missing or null, or has another type, or the steps are spent. */
  evaluate(input: ExpressionInput, steps?: Steps): boolean | null;
}

const VARIABLES = ['p', 'last', 'object'] as const;
const MACROS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter', 'bind']);
/** As long as `matches`, so that places in the text stay the same. */
const RE2_MATCHES = 're2test';

const patterns = new Patterns();

const matches = (text: string, source: string): boolean => patterns.find(source).test(text, METER);

const ENVIRONMENT = createEnvironment();

function createEnvironment(): Environment {
  const environment = new Environment({
    homogeneousAggregateLiterals: false,
    limits: {
      maxAstNodes: LIMITS.expressionNodes,
      maxDepth: LIMITS.expressionDepth,
      maxListElements: LIMITS.expressionItems,
      maxMapEntries: LIMITS.expressionItems,
      maxCallArguments: 8,
    },
  });
  for (const name of VARIABLES) environment.registerVariable(name, 'map');
  // Numbers of JSON are doubles, whatever their literals look like.
  const operators: Readonly<Record<string, (a: number, b: number) => number>> = {
    '+': (a, b) => a + b,
    '-': (a, b) => a - b,
    '*': (a, b) => a * b,
    '/': (a, b) => a / b,
    '%': (a, b) => a % b,
  };
  for (const [sign, run] of Object.entries(operators)) {
    environment.registerOperator(`double ${sign} int: double`, (a: number, b: bigint) => run(a, Number(b)));
    environment.registerOperator(`int ${sign} double: double`, (a: bigint, b: number) => run(Number(a), b));
  }
  environment.registerOperator('double % double: double', (a: number, b: number) => a % b);
  environment.registerFunction(`string.${RE2_MATCHES}(string): bool`, matches);
  environment.registerFunction('matches(string, string): bool', matches);
  environment.registerFunction('abs(double): double', Math.abs);
  environment.registerFunction('abs(int): int', (value: bigint) => (value < 0n ? -value : value));
  return environment;
}

/** Parses and checks an expression. Throws a 400 that names line and column. */
export function parseExpression(given: unknown, place: string): Expression {
  if (typeof given !== 'string' || given.trim() === '')
    throw badRequest(`${place}: expected an expression, such as "p.speed > 90"`);
  if (given.length > LIMITS.expressionCharacters)
    throw badRequest(`${place}: at most ${LIMITS.expressionCharacters} characters`);
  const fail = (reason: string, at: number): never => {
    throw badRequest(`${place}: ${lineAndColumn(given, at)}: ${reason}`);
  };
  const program = compileText(given, fail);
  const { run } = program;
  const { type = 'dyn' } = run.check();
  if (type !== 'bool' && type !== 'dyn') fail(`expected a condition, which is true or false; this is ${type}`, 0);
  if (isCalculation(run.ast))
    fail('expected a condition, which is true or false; this is the result of a calculation', 0);
  const nodes = nodesIn(run.ast);
  const params = new Set(nodes.flatMap((node) => memberOf(node, 'p')));
  const countOf = (name: string): number => nodes.filter(({ op, args }) => op === 'id' && args === name).length;
  const reads = (name: string): boolean => countOf(name) > 0;
  const mayRead = (variable: string, name: string): boolean => {
    const members = nodes.flatMap((node) => memberOf(node, variable));
    return members.includes(name) || countOf(variable) > members.length;
  };
  return {
    text: given,
    params: [...params],
    mayDependOn: (name) => mayRead('p', name) || mayRead('last', name),
    readsLast: reads('last'),
    readsObject: reads('object'),
    evaluate: (input, steps = new Steps()) => evaluate(program, input, steps),
  };
}

const CALCULATING: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '-_']);

/** Whether the result is never true or false, though the types of its parts are not known before there is a packet. */
function isCalculation({ op, args }: ASTNode): boolean {
  if (op === '?:') return (args as unknown as ASTNode[]).slice(1).some(isCalculation);
  return CALCULATING.has(op);
}

type Fail = (reason: string, at: number) => never;
interface Program {
  readonly run: ReturnType<Environment['parse']>;
  /** The steps that it takes at least. */
  readonly steps: number;
  readonly hasMacro: boolean;
}

function compileText(text: string, fail: Fail): Program {
  try {
    const ast = ENVIRONMENT.parse(text).ast;
    checkNodes(ast, fail);
    const run = ENVIRONMENT.parse(withRe2(text, ast, fail));
    const { valid, error } = run.check();
    if (!valid) return fail(error?.summary ?? 'not valid', error?.range?.start ?? 0);
    return { run, steps: meter(run.ast), hasMacro: nodesIn(ast).some(isMacro) };
  } catch (error) {
    if (error instanceof ParseError) return fail(error.summary, error.range?.start ?? 0);
    throw error;
  }
}

const lineAndColumn = (text: string, at: number): string => {
  const before = text.slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
};

function evaluate(program: Program, input: ExpressionInput, steps: Steps): boolean | null {
  try {
    const result = calculate(program, input, steps);
    return typeof result === 'boolean' ? result : null;
  } catch {
    return null;
  }
}

/** Throws where it has no result. */
function calculate({ run, steps: least, hasMacro }: Program, input: ExpressionInput, steps: Steps): unknown {
  if (hasMacro) checkValues(input);
  return withSteps(steps, least, () => run({ ...input }));
}

/** An expression with a value, which is calculated of a packet alone. */
export interface Formula {
  /** The members of `p` that it reads. */
  readonly params: readonly string[];
  /** About how many operations it takes. */
  readonly cost: number;
  /** Throws where it has no result. `steps`: those of all formulas of the packet. */
  calculate(p: JsonObject, steps: Steps): unknown;
}

/** `fail` is told the line and the column. */
export function parseFormula(given: string, fail: (reason: string) => never): Formula {
  if (given.length > LIMITS.expressionCharacters) return fail(`at most ${LIMITS.expressionCharacters} characters`);
  const failAt: Fail = (reason, at) => fail(`${lineAndColumn(given, at)}: ${reason}`);
  const program = compileText(given, failAt);
  const nodes = nodesIn(program.run.ast);
  const other = nodes.find(({ op, args }) => op === 'id' && (args === 'last' || args === 'object'));
  if (other !== undefined) return failAt('a formula reads only p, the packet', other.range.start);
  const isLong = program.hasMacro || nodes.some(isMatches);
  return {
    params: [...new Set(nodes.flatMap((node) => memberOf(node, 'p')))],
    cost: nodes.length * (isLong ? LIMITS.formulaLongCost : 1),
    calculate: (p, steps) => calculate(program, { p, last: {}, object: {} }, steps),
  };
}

/** Throws for too many values, where long texts count as many. Counts no further than needed. */
function checkValues({ p, last, object }: ExpressionInput): void {
  let values = 0;
  const count = (value: Json): void => {
    values += typeof value === 'string' ? 1 + value.length / LIMITS.expressionTextCharacters : 1;
    if (values > LIMITS.expressionValues) throw new Error('the packet has too many values for a macro');
    if (typeof value !== 'object' || value === null) return;
    for (const one of Array.isArray(value) ? value : Object.values(value)) count(one);
  };
  for (const one of [p, last, object]) count(one);
}

const isNode = (value: unknown): value is ASTNode =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && 'op' in value;

const childrenOf = ({ args }: ASTNode): ASTNode[] =>
  (Array.isArray(args) ? (args as unknown[]).flat(2) : [args]).filter(isNode);

function nodesIn(node: ASTNode): ASTNode[] {
  return [node, ...childrenOf(node).flatMap(nodesIn)];
}

/** The member of a variable that the node reads: `p.speed`, or `p["speed"]`. */
function memberOf({ op, args }: ASTNode, variable: string): string[] {
  if (op !== '.' && op !== '[]') return [];
  const [of, name] = args as [ASTNode, string | ASTNode];
  if (of.op !== 'id' || of.args !== variable) return [];
  if (typeof name === 'string') return [name];
  return name.op === 'value' && typeof name.args === 'string' ? [name.args] : [];
}

const isMacro = ({ op, args }: ASTNode): boolean =>
  op === 'rcall' && MACROS.has(String((args as unknown[])[0])) && ((args as unknown[])[2] as unknown[]).length > 1;

const isMatches = ({ op, args }: ASTNode): boolean =>
  (op === 'rcall' || op === 'call') && (args as unknown[])[0] === 'matches';

function checkNodes(ast: ASTNode, fail: Fail): void {
  const nodes = nodesIn(ast);
  const macros = nodes.filter(isMacro);
  for (const macro of macros) {
    const [, receiver, body] = macro.args as unknown as [string, ASTNode, ASTNode[]];
    const inner = [receiver, ...body].flatMap(nodesIn).find(isMacro);
    if (inner !== undefined) fail('a macro within another is not permitted', macro.range.start);
    const { length } = body.flatMap(nodesIn);
    if (length > LIMITS.expressionMacroNodes) fail('a macro with too much in it', macro.range.start);
  }
  const tooMany = macros[LIMITS.expressionMacros];
  if (tooMany !== undefined) fail(`at most ${LIMITS.expressionMacros} macros`, tooMany.range.start);
  let size = 0;
  for (const node of nodes.filter(isMatches)) {
    const source = patternIn(node, fail);
    size += patternSize(source);
    if (size > LIMITS.expressionPatternsSize) fail('matches: the patterns are too large in total', node.range.start);
    // Compiles it, which takes about 10 µs for each unit of its size.
    if (!isPattern(source)) fail('matches: the pattern is not valid (RE2)', node.range.start);
  }
}

function patternIn(node: ASTNode, fail: Fail): string {
  const pattern = ((node.args as unknown[]).at(-1) as ASTNode[]).at(-1);
  const source = pattern?.op === 'value' ? pattern.args : null;
  if (typeof source !== 'string') return fail('matches: expected a text in quotes as its pattern', node.range.start);
  if (patternSize(source) <= LIMITS.expressionPatternSize) return source;
  return fail('matches: the pattern is too large', node.range.start);
}

function isPattern(source: string): boolean {
  try {
    return patterns.find(source) !== undefined;
  } catch {
    return false;
  }
}

/** The same text, with calls of our `matches` in place of those of the library, which uses backtracking. */
function withRe2(text: string, ast: ASTNode, fail: Fail): string {
  let changed = text;
  for (const node of nodesIn(ast)) {
    if (node.op !== 'rcall' || !isMatches(node)) continue;
    const [, receiver, [argument]] = node.args as unknown as [string, ASTNode, ASTNode[]];
    const at = text.lastIndexOf('matches', argument?.range.start);
    if (argument === undefined || at < receiver.range.end) return fail('matches: not understood', node.range.start);
    changed = changed.slice(0, at) + RE2_MATCHES + changed.slice(at + RE2_MATCHES.length);
  }
  const left = nodesIn(ENVIRONMENT.parse(changed).ast).find((node) => node.op === 'rcall' && isMatches(node));
  return left === undefined ? changed : fail('matches: not understood', left.range.start);
}
