/** A function that writes a signal, for the events of fields. */
import type { Signal } from '@preact/signals';

export const write =
  <T>(target: Signal<T>) =>
  (value: T): void => {
    target.value = value;
  };
