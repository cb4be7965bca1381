/** Permissions as boxes and as text, in a form. What shows them is loaded when it is first needed. */
import { signal } from '@preact/signals';
import { Skeleton } from '../parts/notices.js';
import { usePart, withTextsOf } from '../state/parts.js';
import type { PermissionInputProps } from './permission-input.js';

const part = signal<typeof import('./permission-input.js') | null>(null);

export function Permissions(props: PermissionInputProps) {
  const loaded = usePart(part, () => import('./permission-input.js').then(withTextsOf));
  return loaded === null ? <Skeleton rows={8} /> : <loaded.PermissionInput {...props} />;
}
