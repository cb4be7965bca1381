/**
 * Regular expressions of clients. RE2JS parses them, and what it compiles is run here: its own matcher can be neither
 * interrupted nor bounded in memory (8 MiB for each pattern), and took 0.7 s for 64 KiB of text.
 *
 * This reaches beneath RE2JS's public interface: `re2Input.prog`, a program as RE2 has it. test/unit/model/pattern.test.ts holds
 * it to RE2JS's own answers.
 */
import { RE2JS } from 're2js';
import type { StepBudget } from './step-budget.js';

export interface Pattern {
  /** Estimates what compiling takes and keeps: instructions, more or less. */
  readonly size: number;
  /** Whether the text contains a match. */
  test(text: string, budget: StepBudget): boolean;
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
/** The conditions of an instruction that consumes nothing. */
const AT = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, wordBoundary: 16, noWordBoundary: 32 } as const;
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

/** Throws an Error for what is no pattern. Ask `patternSize` first: compiling takes about 10 µs for each unit of it. */
export function compilePattern(source: string): Pattern {
  const program = RE2JS.compile(source).re2Input.prog as Program;
  const matcher = {
    threads: [new Threads(program), new Threads(program)] as const,
    isAnchored: isAnchored(program),
    isConditional: program.inst.some(({ op }) => op === OP.emptyWidth),
  };
  return { size: patternSize(source), test: (text, budget) => find(matcher, text, budget) };
}

/** A set of instructions: a list, and for each when it was put there last. */
class Threads {
  readonly #program: Program;
  readonly #marks: Uint32Array;
  readonly #stack: number[] = [];
  #generation = 0;
  /** How many were put there. */
  added = 0;
  /** Those that consume a character. */
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

  /** Puts the start of the program there. Whether that leads to a match at once. */
  addStart(at: number): boolean {
    return this.add(this.#program.start, at);
  }

  /** Puts there what can be reached without a character under the conditions `at`. Whether a match can. */
  add(first: number, at: number): boolean {
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
        if ((one.arg & ~at) === 0) stack.push(one.out);
      } else if (op >= OP.rune && op <= OP.runeAnyNotNewline) this.waiting.push(one);
    }
    return false;
  }
}

/** Whether a match can only begin where the text does. */
function isAnchored({ start, inst }: Program): boolean {
  let one = inst[start];
  while (one?.op === OP.capture || one?.op === OP.nop) one = inst[one.out];
  return one?.op === OP.emptyWidth && (one.arg & AT.beginText) !== 0;
}

interface Matcher {
  readonly threads: readonly [Threads, Threads];
  readonly isAnchored: boolean;
  /** Whether it looks at what stands around a place. */
  readonly isConditional: boolean;
}

function find({ threads, isAnchored, isConditional }: Matcher, text: string, budget: StepBudget): boolean {
  let [here, next] = threads;
  here.clear();
  let [before, place] = [NONE, 0];
  let rune = runeAt(text, 0);
  if (here.addStart(conditions(before, rune))) return true;
  while (rune !== NONE && !(isAnchored && here.waiting.length === 0)) {
    place += rune > 0xffff ? 2 : 1;
    before = rune;
    rune = runeAt(text, place);
    const at = isConditional ? conditions(before, rune) : 0;
    next.clear();
    budget.spend(1 + here.added);
    for (const waiting of here.waiting) {
      if (waiting.matchRune(before) && next.add(waiting.out, at)) return true;
    }
    if (!isAnchored && next.addStart(at)) return true;
    [here, next] = [next, here];
  }
  return false;
}

const runeAt = (text: string, place: number): number => text.codePointAt(place) ?? NONE;

function conditions(before: number, after: number): number {
  const begin = before === NONE ? AT.beginText | AT.beginLine : before === NEWLINE ? AT.beginLine : 0;
  const end = after === NONE ? AT.endText | AT.endLine : after === NEWLINE ? AT.endLine : 0;
  return begin | end | (isWord(before) === isWord(after) ? AT.noWordBoundary : AT.wordBoundary);
}

const isWord = (rune: number): boolean =>
  (rune >= 97 && rune <= 122) || (rune >= 65 && rune <= 90) || (rune >= 48 && rune <= 57) || rune === 95;

// Classes of Unicode are tables of hundreds of ranges; a range that is folded is gone through character by character.
const CLASS_SIZE = 30;
const FOLDED_RANGE_SIZE = 2_000;

/** How large a pattern becomes at most, before it is compiled: characters, repetitions, and what classes cost. */
export function patternSize(source: string): number {
  let size = source.length + CLASS_SIZE * countOf(source, /\\[pP]|\[:/g);
  if (/\(\?[a-zA-Z]*i/.test(source)) size += FOLDED_RANGE_SIZE * countOf(source, /-(?:\\|[^\0-\x7f])/g);
  let times = 1;
  for (const [, group, least, most] of source.matchAll(/(\)?)\{(\d+)(?:,(\d*))?\}/g)) {
    const count = Math.max(Number(least), Number(most ?? 0)) + 1;
    if (group === ')') times *= count;
    else size += count;
  }
  return size * times;
}

const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
