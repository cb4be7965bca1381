/** What the fields of a rule share: what its objects send, and what is typed and cannot be stored as it is. */
import type { Signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useEffect } from 'preact/hooks';

type Named = readonly (readonly [name: string, text: string])[];

export interface RuleContext {
  readonly parameters: Named;
  readonly commands: Named;
  /** By the place in the rule. */
  readonly problems: Signal<ReadonlyMap<string, string>>;
}

export const RuleFields = createContext<RuleContext | null>(null);

export function useRule(): RuleContext {
  const context = useContext(RuleFields);
  if (context === null) throw new Error('not in the form of a rule');
  return context;
}

/** Says what is wrong at a place, for as long as its field is there. */
export function useProblem(place: string) {
  const { problems } = useRule();
  const say = (problem: string | null): void => {
    if ((problems.peek().get(place) ?? null) === problem) return;
    const next = new Map(problems.peek());
    if (problem === null) next.delete(place);
    else next.set(place, problem);
    problems.value = next;
  };
  useEffect(() => () => say(null), [place]);
  return { problem: problems.value.get(place), say };
}
