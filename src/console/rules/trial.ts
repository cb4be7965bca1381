/** A rule that is tried on the past: of one object as soon as it can be evaluated, of more when somebody asks, and again after each change. */
import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { DAY_MS } from '../../core/units.js';
import type { IntervalMs } from '../objects/days.js';
import { type Json, type Routes, request, VigilError } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';
import { write } from '../state/write.js';
import { isComplete } from './draft.js';
import { parametersRead } from './parameters.js';

/** That of the server. */
export const DEFAULT_DAYS = 7;
/** Objects that one try asks about, one after the other. */
export const MOST_OBJECTS = 20;
/** So long after the last change a rule is tried. */
const FOLLOW_MS = 1_000;
/** What decides when a rule raises an alarm. */
const DECIDING = ['select', 'when', 'for', 'clear', 'clearFor', 'schedule'];

export type Result = Routes['POST /api/v1/rules/test']['answer'];

export interface Tried {
  readonly object: FleetObject;
  readonly result: Result | null;
  /** Why the rest is not known. */
  readonly error: unknown;
}

/** What is looked at: the last days, or between two moments as they are typed. */
export interface Period {
  readonly days: number | null;
  readonly from: string;
  readonly to: string;
}

export interface Trial {
  /** What it answers. */
  readonly question: string;
  readonly period: Period;
  readonly interval: IntervalMs;
  readonly rule: Json;
  readonly count: number;
  readonly all: number;
  readonly tried: readonly Tried[];
}

interface Question {
  readonly rule: Json;
  /** Those that the rule applies to. */
  readonly found: readonly FleetObject[];
  /** Those that somebody has chosen among them. */
  readonly chosen: readonly FleetObject[];
  readonly period: Period;
  /** Throws what is typed and is no JSON. */
  readonly check: () => void;
}

interface Answer {
  /** Null until it was tried first. */
  readonly trial: ReadonlySignal<Trial | null>;
  /** Whether the rule has changed since. */
  readonly isOld: boolean;
  /** Tries it on all of the objects. */
  readonly run: () => Promise<void>;
}

export function useTrial({ rule, found, chosen, period, check }: Question): Answer {
  const trial = useSignal<Trial | null>(null);
  const isWide = useSignal(false);
  const asked = useRef('');
  const inFlight = useRef<Promise<unknown>>(Promise.resolve());
  const objects = chosen.length > 0 ? chosen : found;
  const toQuestion = (few: readonly FleetObject[]): string =>
    JSON.stringify([DECIDING.map((name) => rule[name]), period, few.map(({ _id }) => _id)]);
  const start = async (few: readonly FleetObject[]): Promise<void> => {
    check();
    const question = toQuestion(few);
    asked.current = question;
    const isAsked = (): boolean => asked.current === question;
    const mine = inFlight.current.then(() =>
      tryAll({ rule, few, all: objects.length, period, question, isAsked }, write(trial)),
    );
    inFlight.current = mine.catch(() => undefined);
    await mine;
  };
  const few = chosen.length > 0 || isWide.value ? objects.slice(0, MOST_OBJECTS) : firstOf(found, rule.when);
  const question = toQuestion(few);
  useEffect(() => {
    if (trial.peek() === null && (few.length === 0 || !isComplete(rule.when))) return;
    // What is half typed is refused: the result before stays, and says that it is old.
    const again = (): void => void (asked.current !== question && start(few).catch(() => undefined));
    const timer = setTimeout(again, FOLLOW_MS);
    return () => clearTimeout(timer);
  }, [question]);
  useEffect(
    () => () => {
      asked.current = '';
    },
    [],
  );
  const run = (): Promise<void> => {
    isWide.value = true;
    return start(objects.slice(0, MOST_OBJECTS));
  };
  return { trial, isOld: trial.value?.question !== question, run };
}

/** The first object that sends something of what the condition reads; without one, the first. */
function firstOf(found: readonly FleetObject[], when: unknown): readonly FleetObject[] {
  const roots = parametersRead(when).map((path) => path.split('.')[0] ?? '');
  return [
    found.find(({ state }) => roots.some((name) => state !== undefined && name in state)) ?? found[0] ?? [],
  ].flat();
}

interface Asked extends Pick<Trial, 'question' | 'period' | 'rule' | 'all'> {
  readonly few: readonly FleetObject[];
  /** False when something else is asked meanwhile. */
  readonly isAsked: () => boolean;
}

/** One object after the other; says what is known after each. */
async function tryAll({ few, isAsked, ...asked }: Asked, say: (trial: Trial) => void): Promise<void> {
  const bounds = boundsOf(asked.period);
  const about = { ...asked, interval: intervalOf(bounds), count: few.length };
  let tried: readonly Tried[] = [];
  for (const object of few) {
    if (!isAsked()) return;
    tried = [...tried, await tryOn(asked.rule, object, bounds)];
    if (isAsked()) say({ ...about, tried });
  }
  if (few.length === 0) say({ ...about, tried });
}

interface Bounds {
  from?: string;
  to?: string;
}

/** What is not typed is not sent: the server looks at the seven days before `to`, and until now. */
function boundsOf({ days, from, to }: Period): Bounds {
  if (days !== null) return { from: isoOf(serverNowMs() - days * DAY_MS) };
  const bounds: Bounds = {};
  if (from !== '') bounds.from = isoOf(from);
  if (to !== '') bounds.to = isoOf(to);
  return bounds;
}

function intervalOf({ from, to }: Bounds): IntervalMs {
  const toMs = Math.min(serverNowMs(), to === undefined ? Infinity : Date.parse(to));
  return { fromMs: from === undefined ? toMs - DEFAULT_DAYS * DAY_MS : Date.parse(from), toMs };
}

const isoOf = (moment: number | string): string => new Date(moment).toISOString();

/** A refusal that names a field is thrown, to be shown there; too many packets of one object say so beside it. */
async function tryOn(rule: Json, object: FleetObject, bounds: Bounds): Promise<Tried> {
  const { name, ...rest } = rule;
  const named = typeof name === 'string' && name.trim() !== '' ? { name, ...rest } : rest;
  try {
    const body = { rule: named, object: object._id, ...bounds };
    const result = await request('POST /api/v1/rules/test', { body });
    return { object, result, error: null };
  } catch (error) {
    if (error instanceof VigilError && (error.status === 413 || error.status === 403))
      return { object, result: null, error };
    throw error;
  }
}
