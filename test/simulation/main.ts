/**
 * `npm run simulate -- --seed 42 --runs 1000 [--seconds 60] [--only presence] [--trace]`: runs worlds one after the other, and prints one
 * line for each.
 */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { addTo, type Census, missingIn, WANTED } from './census.js';
import { stepSeed } from './random.js';
import { EXTRAS, extraOf, type Plan, plan, stepsOf } from './steps.js';
import { runPlan } from './world.js';

interface Options {
  readonly seed: number;
  readonly runs: number;
  /** No run begins later. */
  readonly seconds: number;
  /** Only runs of this kind, which keep their seeds; null for all. */
  readonly only: string | null;
  readonly trace: boolean;
}

const KINDS: readonly string[] = ['plain', ...EXTRAS];

const RUNS_MAX = 1_000_000;
const SECONDS_MAX = 86_400;
/** So many runs must have reached everything that the census wants. */
const CENSUS_RUNS = 1_000;
/** One of so many runs is guarded. */
const GUARD_EVERY = 20;
/** A failure is shrunk for this long: later, no smaller one is looked for. */
const SHRINK_MS = 20_000;

function parseOptions(args: readonly string[]): Options {
  const options = {
    seed: { type: 'string' },
    runs: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    trace: { type: 'boolean' },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  if (values.only !== undefined && !KINDS.includes(values.only))
    throw new TypeError(`--only: expected one of ${KINDS.join(', ')}, not "${values.only}"`);
  return {
    only: values.only ?? null,
    seed: parseNumber('--seed', values.seed ?? '1', 2 ** 31 - 1),
    runs: parseNumber('--runs', values.runs ?? '100', RUNS_MAX),
    seconds: parseNumber('--seconds', values.seconds ?? String(SECONDS_MAX), SECONDS_MAX),
    trace: values.trace ?? false,
  };
}

function parseNumber(name: string, text: string, max: number): number {
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text);
  throw new TypeError(`${name}: expected a whole number of at most ${max}, not "${text}"`);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

/** Prints the steps of a failure after they were shrunk, and how to repeat it. */
function report(found: Plan, error: unknown, { seed, run }: { seed: number; run: number }): void {
  print(`\nRun ${run}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  print(`\nThe steps, shrunk (${found.instances} instances):`);
  if (found.limits !== undefined) print(`  limits ${JSON.stringify(found.limits)}`);
  for (const step of stepsOf(found)) print(`  ${JSON.stringify(step)}`);
  print(`\nRepeat it: npm run simulate -- --seed ${seed + run} --runs 1 --trace`);
}

async function main(): Promise<number> {
  const { seed, runs, seconds, only, trace } = parseOptions(process.argv.slice(2));
  const census: Census = new Map();
  const untilMs = performance.now() + seconds * 1_000;
  let run = 0;
  for (; run < runs && performance.now() < untilMs; run++) {
    const startMs = performance.now();
    let line = '';
    let failedMs: number | null = null;
    const property = fc.asyncProperty(plan, async (drawn) => {
      if (only !== null && (extraOf(drawn) ?? 'plain') !== only) return;
      if (failedMs !== null && performance.now() > failedMs + SHRINK_MS) return;
      let lines: readonly string[] = [];
      try {
        const onTrace = (all: readonly string[]): void => {
          lines = all;
        };
        const outcome = await runPlan(drawn, { isGuarded: trace || run % GUARD_EVERY === 0, onTrace });
        addTo(census, outcome.census);
        const has = extraOf(drawn) === null ? '' : `${extraOf(drawn)}, `;
        line = `${drawn.instances} instances, ${has}${stepsOf(drawn).length} steps, ${outcome.events} events`;
      } catch (error) {
        if (failedMs === null) print(`run ${run} failed: ${String(error)}; shrinking its steps`);
        failedMs ??= performance.now();
        throw error;
      } finally {
        if (trace) print(lines.join('\n'));
      }
    });
    const details = await fc.check(property, { seed: stepSeed(seed + run, 0), numRuns: 1 });
    if (details.failed) {
      report(details.counterexample?.[0] as Plan, details.errorInstance, { seed, run });
      return 1;
    }
    if (line !== '') print(`run ${run}: seed ${seed + run}, ${line}, ${Math.round(performance.now() - startMs)} ms`);
  }
  for (const name of WANTED) print(`${String(census.get(name) ?? 0).padStart(8)} ${name}`);
  const missing = missingIn(census);
  if (run < CENSUS_RUNS || only !== null || missing.length === 0) return 0;
  print(`The census is not complete: ${missing.join(', ')}`);
  return 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof TypeError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 2;
}
