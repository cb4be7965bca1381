/** A rule that is tried on the past of objects, and again when it has changed since. */
import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { DAY_MS } from '../../core/units.js';
import type { IntervalMs } from '../objects/days.js';
import { type Json, type Routes, request, VigilError } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';

/** That of the server. */
export const DEFAULT_DAYS = 7;
/** Objects that one try asks about, one after the other. */
export const MOST_OBJECTS = 20;
/** So long after the last change a rule that was tried is tried again. */
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
  readonly period: Period;
  readonly interval: IntervalMs;
  readonly rule: Json;
  readonly count: number;
  readonly all: number;
  readonly tried: readonly Tried[];
}

interface Question {
  readonly rule: Json;
  /** Those that it may be tried on. */
  readonly objects: readonly FleetObject[];
  readonly period: Period;
  /** Throws what is typed and is no JSON. */
  readonly check: () => void;
}

interface Answer {
  /** Null until it was tried first. */
  readonly trial: ReadonlySignal<Trial | null>;
  readonly run: () => Promise<void>;
}

export function useTrial({ rule, objects, period, check }: Question): Answer {
  const trial = useSignal<Trial | null>(null);
  const few = objects.slice(0, MOST_OBJECTS);
  const question = JSON.stringify([DECIDING.map((name) => rule[name]), period, few.map(({ _id }) => _id)]);
  const asked = useRef('');
  const run = async (): Promise<void> => {
    check();
    asked.current = question;
    const bounds = boundsOf(period);
    const about = { period, interval: intervalOf(bounds), rule, count: few.length, all: objects.length };
    let tried: readonly Tried[] = [];
    for (const object of few) {
      tried = [...tried, await tryOn(rule, object, bounds)];
      // Something else is asked meanwhile.
      if (asked.current !== question) return;
      trial.value = { ...about, tried };
    }
    if (few.length === 0) trial.value = { ...about, tried };
  };
  useEffect(() => {
    if (trial.peek() === null) return;
    // What is half typed is refused: the result before stays, and says that it is old.
    const again = (): void => void (asked.current !== question && run().catch(() => undefined));
    const timer = setTimeout(again, FOLLOW_MS);
    return () => clearTimeout(timer);
  }, [question]);
  useEffect(
    () => () => {
      asked.current = '';
    },
    [],
  );
  return { trial, run };
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
