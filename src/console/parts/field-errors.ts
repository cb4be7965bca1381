/** Shows an error at the field of a form that it names. */
import { type Signal, useComputed, useSignal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useEffect, useRef } from 'preact/hooks';
import { VigilError } from '../state/api.js';
import { language } from '../text/language.js';

/** What is wrong with a field, or with what is at a path in its value, in the user's language. */
export class FieldError extends Error {
  readonly path: string;

  constructor(path: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.path = path;
  }
}

/** The error of the field that a refusal names; every other error as it is. */
export async function toFieldError(error: unknown): Promise<unknown> {
  if (!(error instanceof VigilError) || (error.status !== 400 && error.status !== 409)) return error;
  // Few people ever need it. When it cannot be loaded, the form shows what the server said.
  const { splitHelper, toText } = await import('../text/server-messages.js');
  const [path, message] = splitHelper(error.helper ?? '') ?? [];
  return path && message ? new FieldError(path, toText(message, language.value), error) : error;
}

/** The names of the fields of a form, and which of them its error is about. */
export function useFaults(error: Signal<unknown>) {
  const names = useSignal<readonly string[]>([]);
  const fault = useComputed(() => {
    if (!(error.value instanceof FieldError)) return null;
    const { path, message } = error.value;
    // The innermost, where a part of a form has fields of its own.
    const [field] = names.value
      .filter((one) => `${path}.`.startsWith(`${one}.`))
      .sort((one, other) => other.length - one.length);
    if (field === undefined) return null;
    // Where in a value of several parts.
    const below = path.slice(field.length + 1);
    return { field, text: below === '' ? message : `${below}: ${message}` };
  });
  return { names, fault };
}

interface FaultyWork extends ReturnType<typeof useFaults> {
  readonly error: Signal<unknown>;
}

export const FormWork = createContext<FaultyWork | null>(null);

/** Makes a field known to its form by its name. Its error is there until `clear`, and takes the focus when it comes. */
export function useFault<T extends HTMLElement>(name: string | undefined) {
  const work = useContext(FormWork);
  const input = useRef<T>(null);
  useEffect(() => {
    if (work === null || name === undefined) return;
    const { names } = work;
    names.value = [...names.peek(), name];
    return () => {
      names.value = names.peek().filter((one) => one !== name);
    };
  }, [name]);
  const found = work?.fault.value;
  const fault = found?.field === name ? found : undefined;
  useEffect(() => {
    if (fault) input.current?.focus();
  }, [fault]);
  const clear = (): void => {
    if (work && fault) work.error.value = null;
  };
  return { text: fault?.text, input, clear };
}
