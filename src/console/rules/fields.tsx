/** Fields of rules: a text with suggestions, a list that is chosen from names, and JSON for what no form shows. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import { parseExactJson } from '../../core/exact-json.js';
import { useFault } from '../parts/field-errors.js';
import { Field, Note } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { t } from '../text/language.js';
import { useProblem } from './context.js';

const MOST_SUGGESTIONS = 200;

type Option = readonly [value: string, text: string];

interface SuggestedProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly hint?: string;
  readonly onInput: (value: string) => void;
}

/** A text; the browser suggests what is known. */
export function Suggested({ name, label, value, options, hint, onInput }: SuggestedProps) {
  const id = useId();
  const { text, input, clear } = useFault<HTMLInputElement>(name);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={input}
        name={name}
        list={`${id}-list`}
        value={value}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-invalid={text ? true : undefined}
        aria-describedby={(text ?? hint) ? `${id}-note` : undefined}
        onInput={(event) => {
          clear();
          onInput(event.currentTarget.value);
        }}
      />
      <datalist id={`${id}-list`}>
        {options.slice(0, MOST_SUGGESTIONS).map(([one, about]) => (
          <option key={one} value={one}>
            {about}
          </option>
        ))}
      </datalist>
      <Note id={`${id}-note`} error={text} hint={hint} />
    </div>
  );
}

interface PickListProps {
  readonly name: string;
  readonly label: string;
  readonly values: readonly string[];
  readonly options: readonly Option[];
  readonly hint?: string;
  /** What becomes of text that is none of the options: it keeps the form from being sent, is added, or counts for nothing. */
  readonly others?: 'refused' | 'added' | 'ignored';
  readonly onChange: (values: readonly string[]) => void;
}

/** Several of what there is, each with its name; Enter adds what is typed. */
export function PickList({ name, label, values, options, hint, others = 'refused', onChange }: PickListProps) {
  const id = useId();
  const typed = useSignal('');
  const { text, input, clear } = useFault<HTMLInputElement>(name);
  const chosen = new Set(values);
  const left = options.filter(([value]) => !chosen.has(value));
  const titleOf = (value: string): string => options.find(([one]) => one === value)?.[1] || value;
  const add = (asked: string): void => {
    const wanted = asked.trim();
    const found =
      left.find(([value, title]) => title === wanted || value === wanted)?.[0] ?? (others === 'added' ? wanted : '');
    if (found === '') return;
    typed.value = '';
    if (!chosen.has(found)) onChange([...values, found]);
  };
  const change = (entered: string): void => {
    clear();
    typed.value = entered;
    // Browsers say nothing of what was chosen from the list except that it is there.
    if (left.some(([value, title]) => title === entered || value === entered)) add(entered);
  };
  useTyped(input, { isRefused: others === 'refused' && typed.value.trim() !== '', take: () => add(typed.peek()) });
  return (
    <div class="field pick-list">
      <label for={id}>{label}</label>
      <Picked
        values={values}
        titleOf={titleOf}
        onRemove={(value) => {
          clear();
          onChange(values.filter((one) => one !== value));
        }}
      />
      <input
        id={id}
        ref={input}
        list={`${id}-list`}
        value={typed.value}
        placeholder={t('rule.add')}
        autocomplete="off"
        aria-invalid={text ? true : undefined}
        aria-describedby={(text ?? hint) ? `${id}-note` : undefined}
        onInput={(event) => change(event.currentTarget.value)}
        onBlur={() => add(typed.peek())}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          add(event.currentTarget.value);
        }}
      />
      <datalist id={`${id}-list`}>
        {left.slice(0, MOST_SUGGESTIONS).map(([value, title]) => (
          <option key={value} value={title || value} />
        ))}
      </datalist>
      <Note id={`${id}-note`} error={text} hint={hint} />
    </div>
  );
}

/** Takes text whose option has come after it, and keeps the form from being sent with text that is refused. */
function useTyped(
  input: RefObject<HTMLInputElement | null>,
  { isRefused, take }: { isRefused: boolean; take: () => void },
): void {
  useEffect(() => {
    if (document.activeElement !== input.current) take();
  });
  useEffect(() => input.current?.setCustomValidity(isRefused ? t('rule.notInList') : ''), [isRefused]);
}

interface PickedProps {
  readonly values: readonly string[];
  readonly titleOf: (value: string) => string;
  readonly onRemove: (value: string) => void;
}

function Picked({ values, titleOf, onRemove }: PickedProps) {
  if (values.length === 0) return null;
  return (
    <ul class="picked">
      {values.map((value) => (
        <li key={value}>
          <span>{titleOf(value)}</span>
          <button
            type="button"
            class="icon-button"
            aria-label={t('rule.leaveOut', { name: titleOf(value) })}
            onClick={() => onRemove(value)}
          >
            <Icon name="close" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}

interface JsonFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value: unknown;
  readonly hint?: string;
  readonly rows?: number;
  /** With `undefined` when the field is emptied. */
  readonly onChange: (value: unknown) => void;
}

/** What is typed remains as it is; the value follows whenever it is JSON. */
export function JsonField({ name, label, value, hint, rows = 4, onChange }: JsonFieldProps) {
  const text = useSignal(value === undefined ? '' : JSON.stringify(value, null, 2));
  const { problem, say } = useProblem(name);
  const input = (typed: string): void => {
    text.value = typed;
    try {
      const parsed = typed.trim() === '' ? undefined : parseExactJson(typed);
      say(null);
      onChange(parsed);
    } catch (error) {
      say(t('rule.notJson', { reason: (error as Error).message }));
    }
  };
  return (
    <Field
      name={name}
      label={label}
      hint={hint}
      value={text.value}
      rows={Math.max(rows, Math.min(14, text.value.split('\n').length))}
      error={problem}
      onInput={input}
    />
  );
}

interface RulePartProps {
  /** Where it is in the rule: errors that name no field inside it are shown here. */
  readonly name: string;
  readonly legend: string;
  readonly children: ComponentChildren;
}

/** A part of a rule with several fields. */
export function RulePart({ name, legend, children }: RulePartProps) {
  const id = useId();
  const { text, input } = useFault<HTMLFieldSetElement>(name);
  return (
    <fieldset class="rule-part" ref={input} tabIndex={-1} aria-describedby={text ? id : undefined}>
      <legend>{legend}</legend>
      {children}
      <Note id={id} error={text} />
    </fieldset>
  );
}

/** Takes a condition, an action or a step away. */
export const Remove = ({ name, onRemove }: { readonly name: string; readonly onRemove: () => void }) => (
  <button type="button" class="icon-button" aria-label={t('rule.removeThis', { name })} onClick={onRemove}>
    <Icon name="trash" size={16} />
  </button>
);
