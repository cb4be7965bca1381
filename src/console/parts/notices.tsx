/** Short messages at the edge of the window, also read aloud; empty states; placeholders while something loads. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { t } from '../text/language.js';
import { Icon, type IconName } from './icon.js';

const SHOWN_MS = 4_000;
const messages = signal<readonly { id: number; text: string }[]>([]);
let lastId = 0;

export function notify(text: string): void {
  const id = ++lastId;
  messages.value = [...messages.value, { id, text }];
  setTimeout(() => {
    messages.value = messages.value.filter((one) => one.id !== id);
  }, SHOWN_MS);
}

export function Notices() {
  return (
    <div class="notices" role="status">
      {messages.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** Says what would be here, and the next step. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Says that the user's role lacks the permission for this page, and which one. `request` is written as roles have it. */
export const NotPermitted = ({ request }: { request: string }) => (
  <Empty icon="shield" title={t('error.forbidden')}>
    <p class="quiet">{t('error.needs')}</p>
    <p>
      <code>{request}</code>
    </p>
  </Empty>
);

export function Skeleton({ rows }: { rows: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} />
      ))}
    </div>
  );
}
