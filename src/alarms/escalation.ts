/** The webhooks and commands that follow while nobody acknowledges an alarm, as far as they have not come. Kept with the state of the rule. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { type EscalationStep, type ExactAction, exactOf } from '../core/rule/action.js';

export interface WaitingStep {
  /** Its number in the rule, from 1 on. */
  readonly step: number;
  /** By the service's clock. */
  readonly dueMs: number;
  readonly actions: readonly ExactAction[];
}

/** What an alarm that is recorded now has before it; null for nothing. */
export function toWaiting(escalation: readonly EscalationStep[], recordedMs: number): readonly WaitingStep[] | null {
  const steps = escalation.flatMap(({ afterMs, actions }, index) => {
    const exact = exactOf(actions);
    return exact.length === 0 ? [] : [{ step: index + 1, dueMs: recordedMs + afterMs, actions: exact }];
  });
  return steps.length === 0 ? null : steps;
}

/** The steps that have come, and those that have not; null for none. */
export function splitWaiting(
  waiting: readonly WaitingStep[],
  nowMs: number,
): { due: readonly WaitingStep[]; later: readonly WaitingStep[] | null } {
  const later = waiting.filter(({ dueMs }) => dueMs > nowMs);
  return { due: waiting.filter(({ dueMs }) => dueMs <= nowMs), later: later.length === 0 ? null : later };
}

/** Whether the rule says so still: what somebody has taken out of it is not done. */
export const isKept = (escalation: readonly EscalationStep[], action: ExactAction): boolean =>
  escalation.some(({ actions }) => actions.some((one) => isDeepStrictEqual(one, action)));
