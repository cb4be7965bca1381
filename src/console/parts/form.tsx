/** The parts of forms: a field with its label, hint and error; a button that waits for its work. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { VigilError } from '../state/api.js';
import { t } from '../text/language.js';
import { SeenUntil } from './age.js';
import { FieldError, FormWork, toFieldError, useFault, useFaults } from './field-errors.js';

interface FieldProps {
  readonly label: string;
  /** As the server names it: its errors are shown here. */
  readonly name?: string | undefined;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | null | undefined;
  readonly type?: 'text' | 'password' | 'email' | 'number' | 'date' | 'datetime-local' | 'time';
  readonly autocomplete?: 'username' | 'current-password' | 'new-password' | 'name' | 'email' | 'off';
  readonly required?: boolean;
  readonly placeholder?: string | undefined;
  readonly autofocus?: boolean;
  readonly readOnly?: boolean;
  readonly rows?: number;
}

export function Field({ label, value, onInput, hint, error, rows, ...rest }: FieldProps) {
  const { shared, input, clear, around } = useField<HTMLInputElement & HTMLTextAreaElement>({
    label,
    hint,
    error,
    name: rest.name,
  });
  // A browser does it only for the first page.
  useEffect(() => {
    if (rest.autofocus) input.current?.focus();
  }, []);
  const filled = {
    ...shared,
    value,
    spellcheck: false,
    onInput: (event: Event) => {
      clear();
      onInput((event.currentTarget as HTMLInputElement).value);
    },
  } as const;
  return around(
    rows === undefined ? (
      <input {...filled} {...({ type: 'text', ...rest } as { type: 'text' })} autocapitalize="none" />
    ) : (
      <textarea {...filled} rows={rows} />
    ),
  );
}

/** What inputs have in common: their label, and the hint or the error below. */
function useField<T extends HTMLElement>({ label, name, hint, error: own }: Partial<FieldProps>) {
  const id = useId();
  const { text, input, clear } = useFault<T>(name);
  const error = own ?? text;
  const noteId = `${id}-note`;
  const shared = {
    id,
    name,
    ref: input,
    'aria-invalid': error ? true : undefined,
    'aria-describedby': (error ?? hint) ? noteId : undefined,
  } as const;
  const around = (field: ComponentChildren) => (
    <div class="field">
      <label for={id}>{label}</label>
      {field}
      <Note id={noteId} error={error} hint={hint} />
    </div>
  );
  return { shared, input, clear, around };
}

interface NoteProps {
  readonly id: string;
  readonly error: string | null | undefined;
  readonly hint?: string | undefined;
}

/** What stands below a field. */
export function Note({ id, error, hint }: NoteProps) {
  const text = error ?? hint;
  return text ? (
    <p id={id} class={error ? 'note error' : 'note'}>
      {text}
    </p>
  ) : null;
}

interface SelectProps {
  readonly label: string;
  /** As the server names it: its errors are shown here. */
  readonly name?: string | undefined;
  readonly hint?: string | undefined;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (value: string) => void;
}

export function Select({ value, options, onChange, ...rest }: SelectProps) {
  const { shared, clear, around } = useField<HTMLSelectElement>(rest);
  return around(
    <select
      {...shared}
      value={value}
      onChange={(event) => {
        clear();
        onChange(event.currentTarget.value);
      }}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>,
  );
}

/** What went wrong, in words for a person, with the id under which the log of the service has it. */
/** `seenMs`: until when what is shown beneath was current. */
export function Problem({ error, seenMs = null }: { error: unknown; seenMs?: number | null }) {
  if (!error) return null;
  return (
    <p class="problem" role="alert">
      {explain(error)} {seenMs !== null && <SeenUntil ms={seenMs} />}
      {error instanceof VigilError && error.requestId && error.status >= 500 && (
        <small>{t('error.requestId', { id: error.requestId })}</small>
      )}
    </p>
  );
}

export function explain(error: unknown): string {
  // Of a field that the form does not have, what the server said.
  if (error instanceof FieldError && error.cause) return explain(error.cause);
  if (!(error instanceof VigilError)) return String((error as Error).message ?? error);
  if (error.status === 0) return t('offline.server');
  if (error.status === 403) return t('error.forbidden');
  if (error.status === 429) return t('error.tooMany');
  if (error.status === 503) return t('error.unavailable');
  return error.helper ?? error.message;
}

/** Runs one piece of work at a time, and keeps why it failed. */
export function useWork() {
  const isBusy = useSignal(false);
  const error = useSignal<unknown>(null);
  const faults = useFaults(error);
  const run = async (work: () => Promise<void>): Promise<void> => {
    if (isBusy.value) return;
    isBusy.value = true;
    error.value = null;
    try {
      await work();
    } catch (thrown) {
      error.value = await toFieldError(thrown).catch(() => thrown);
    } finally {
      isBusy.value = false;
    }
  };
  return { isBusy, error, run, ...faults };
}

/** Runs work for several things at once, but one piece for each of them, and keeps why the last one failed. */
export function useWorkOfEach() {
  const error = useSignal<unknown>(null);
  const busy = useRef(new Set<string>()).current;
  /** Does nothing for those whose work goes on. */
  const run = async (ids: readonly string[], work: (ids: readonly string[]) => Promise<void>): Promise<void> => {
    const idle = ids.filter((id) => !busy.has(id));
    if (idle.length === 0) return;
    if (busy.size === 0) error.value = null;
    for (const id of idle) busy.add(id);
    try {
      await work(idle);
    } catch (thrown) {
      error.value = thrown;
    } finally {
      for (const id of idle) busy.delete(id);
    }
  };
  return { error, run };
}

interface FormProps {
  readonly work: ReturnType<typeof useWork>;
  readonly submit: string;
  readonly onSubmit: () => Promise<void>;
  readonly children: ComponentChildren;
  readonly onCancel?: () => void;
  readonly kind?: 'primary' | 'danger';
  readonly disabled?: boolean;
}

export function Form({ work, submit, onSubmit, children, onCancel, kind = 'primary', disabled = false }: FormProps) {
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void work.run(onSubmit);
      }}
    >
      <FormWork.Provider value={work}>{children}</FormWork.Provider>
      {work.fault.value === null && <Problem error={work.error.value} />}
      <div class="form-actions">
        {onCancel && (
          <button type="button" class="button" onClick={onCancel}>
            {t('action.cancel')}
          </button>
        )}
        <button type="submit" class={`button ${kind}`} disabled={disabled} aria-busy={work.isBusy.value}>
          {submit}
        </button>
      </div>
    </form>
  );
}
