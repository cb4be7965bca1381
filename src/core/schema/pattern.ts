/**
 * Runs regular expressions of clients. RE2JS compiles them; this module runs the compiled program, because the matcher of RE2JS
 * can be neither interrupted nor bounded in memory (8 MiB for each pattern), and took 0.7 s for 64 KiB of text.
 *
 * It uses a private field of RE2JS: `re2Input.prog`, a program in the form of RE2. test/unit/model/pattern.test.ts compares the
 * results with those of RE2JS.
 */
import { RE2JS } from 're2js';
import type { StepBudget } from './step-budget.js';

type Budget = Pick<StepBudget, 'spend'>;

export interface Pattern {
  /** Estimates the cost of compiling and keeping the pattern, roughly in instructions. */
  readonly size: number;
  /** Whether the text contains a match. */
  test(text: string, budget: Budget): boolean;
}

/** The instructions of RE2. */
const OP = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  match: 6,
  nop: 7,
  rune: 8,
  runeAnyNotNewline: 11,
} as const;
/** The conditions of an instruction that consumes no character. */
const CONDITION = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, wordBoundary: 16, noWordBoundary: 32 } as const;
const NEWLINE = 10;
const NONE = -1;

interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  matchRune(rune: number): boolean;
}

interface Program {
  readonly start: number;
  readonly inst: readonly Instruction[];
}

/** Throws an Error for an invalid pattern. Check `patternSize` first: compiling takes about 10 µs for each unit of it. */
export function compilePattern(source: string): Pattern {
  const program = RE2JS.compile(source).re2Input.prog as Program;
  const matcher = {
    threads: [new Threads(program), new Threads(program)] as const,
    isAnchored: isAnchored(program),
    isConditional: program.inst.some(({ op }) => op === OP.emptyWidth),
  };
  return { size: patternSize(source), test: (text, budget) => find(matcher, text, budget) };
}

/** A set of instructions that clears in constant time: each mark holds the generation in which its instruction was added. */
class Threads {
  readonly #program: Program;
  readonly #marks: Uint32Array;
  readonly #stack: number[] = [];
  #generation = 0;
  /** How many instructions were added. */
  added = 0;
  /** The instructions that consume a character. */
  readonly waiting: Instruction[] = [];

  constructor(program: Program) {
    this.#program = program;
    this.#marks = new Uint32Array(program.inst.length);
  }

  clear(): void {
    this.waiting.length = 0;
    this.added = 0;
    this.#generation = (this.#generation + 1) >>> 0;
    if (this.#generation === 0) this.#marks.fill(0);
    this.#generation ||= 1;
  }

  /** Adds the start of the program. Returns whether it matches without a character. */
  addStart(met: number): boolean {
    return this.add(this.#program.start, met);
  }

  /** Adds the instructions that are reachable without a character under the conditions `met`. Returns whether a match is. */
  add(first: number, met: number): boolean {
    const stack = this.#stack;
    stack.length = 0;
    stack.push(first);
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (this.#marks[next] === this.#generation) continue;
      this.#marks[next] = this.#generation;
      this.added++;
      const one = this.#program.inst[next] as Instruction;
      const { op } = one;
      if (op === OP.match) return true;
      if (op === OP.alt || op === OP.altMatch) stack.push(one.out, one.arg);
      else if (op === OP.capture || op === OP.nop) stack.push(one.out);
      else if (op === OP.emptyWidth) {
        if ((one.arg & ~met) === 0) stack.push(one.out);
      } else if (op >= OP.rune && op <= OP.runeAnyNotNewline) this.waiting.push(one);
    }
    return false;
  }
}

/** Whether a match can begin only at the start of the text. */
function isAnchored({ start, inst }: Program): boolean {
  let one = inst[start];
  while (one?.op === OP.capture || one?.op === OP.nop) one = inst[one.out];
  return one?.op === OP.emptyWidth && (one.arg & CONDITION.beginText) !== 0;
}

interface Matcher {
  readonly threads: readonly [Threads, Threads];
  readonly isAnchored: boolean;
  /** Whether it has conditions on the characters around a position. */
  readonly isConditional: boolean;
}

function find({ threads, isAnchored, isConditional }: Matcher, text: string, budget: Budget): boolean {
  let [here, next] = threads;
  here.clear();
  let before = NONE;
  let index = 0;
  let rune = runeAt(text, 0);
  if (here.addStart(conditions(before, rune))) return true;
  while (rune !== NONE && !(isAnchored && here.waiting.length === 0)) {
    index += rune > 0xffff ? 2 : 1;
    before = rune;
    rune = runeAt(text, index);
    const met = isConditional ? conditions(before, rune) : 0;
    next.clear();
    budget.spend(1 + here.added);
    for (const waiting of here.waiting) {
      if (waiting.matchRune(before) && next.add(waiting.out, met)) return true;
    }
    if (!isAnchored && next.addStart(met)) return true;
    [here, next] = [next, here];
  }
  return false;
}

const runeAt = (text: string, index: number): number => text.codePointAt(index) ?? NONE;

function conditions(before: number, after: number): number {
  const begin =
    before === NONE ? CONDITION.beginText | CONDITION.beginLine : before === NEWLINE ? CONDITION.beginLine : 0;
  const end = after === NONE ? CONDITION.endText | CONDITION.endLine : after === NEWLINE ? CONDITION.endLine : 0;
  return begin | end | (isWord(before) === isWord(after) ? CONDITION.noWordBoundary : CONDITION.wordBoundary);
}

const isWord = (rune: number): boolean =>
  (rune >= 97 && rune <= 122) || (rune >= 65 && rune <= 90) || (rune >= 48 && rune <= 57) || rune === 95;

// Unicode classes are tables of hundreds of ranges; RE2JS folds a case-insensitive range character by character.
const CLASS_SIZE = 30;
const FOLDED_RANGE_SIZE = 2_000;

/** An upper bound of the compiled size of a pattern: characters, repetitions, and the cost of classes. */
export function patternSize(source: string): number {
  let size = source.length + CLASS_SIZE * countOf(source, /\\[pP]|\[:/g);
  if (/\(\?[a-zA-Z]*i/.test(source)) size += FOLDED_RANGE_SIZE * countOf(source, /-(?:\\|[^\0-\x7f])/g);
  let times = 1;
  for (const [, group, min, max] of source.matchAll(/(\)?)\{(\d+)(?:,(\d*))?\}/g)) {
    const count = Math.max(Number(min), Number(max ?? 0)) + 1;
    if (group === ')') times *= count;
    else size += count;
  }
  return size * times;
}

const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
