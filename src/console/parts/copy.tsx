/** Text to take along: a token, a command. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { t } from '../text/language.js';
import { copyText } from './copy-text.js';
import { Icon } from './icon.js';

const SHOWN_MS = 2_000;

export function CopyBox({ text, label }: { text: string; label: string }) {
  const shown = useRef<HTMLElement>(null);
  const isCopied = useSignal(false);
  const copy = async (): Promise<void> => {
    if (shown.current === null || !(await copyText(text, shown.current))) return;
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, SHOWN_MS);
  };
  return (
    <div class="copy-box">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long text is scrolled with the keyboard */}
      <section ref={shown} tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </section>
      <button type="button" class="button small" onClick={() => void copy()}>
        <Icon name={isCopied.value ? 'check' : 'copy'} size={16} />
        <span aria-live="polite">{isCopied.value ? t('action.copied') : t('action.copy')}</span>
      </button>
    </div>
  );
}
