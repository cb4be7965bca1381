/** Asks before something that cannot be undone. What asks is loaded when it is first needed. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { loadPart } from '../state/parts.js';
import type { ConfirmProps } from './confirm-dialog.js';

const part = signal<typeof import('./confirm-dialog.js') | null>(null);

async function load(): Promise<void> {
  part.value ??= await loadPart(() => import('./confirm-dialog.js'));
}

export function Confirm(props: ConfirmProps) {
  useEffect(() => void load(), []);
  return part.value && <part.value.ConfirmDialog {...props} />;
}
