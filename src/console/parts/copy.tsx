/** Text to take along: a token, a command. Copied also where browsers have no clipboard for scripts: over plain HTTP. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { t } from '../text/language.js';
import { Icon } from './icon.js';
import { notify } from './notices.js';

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

/**
 * `element` is part of the page, or of the dialog in front of it: browsers copy only what is selected there, and it is selected if
 * nothing else works, so that the keyboard copies it. Says what came of it.
 */
export async function copyText(text: string, element: HTMLElement): Promise<boolean> {
  const isCopied = (await copyByScript(text)) || copyBySelection(text, element);
  if (!isCopied) notify(t('action.selected'));
  return isCopied;
}

async function copyByScript(text: string): Promise<boolean> {
  try {
    // There is none over plain HTTP.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** What is copied is the text, whatever the element shows of it. */
function copyBySelection(text: string, element: HTMLElement): boolean {
  getSelection()?.selectAllChildren(element);
  const fill = (event: ClipboardEvent): void => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  document.addEventListener('copy', fill, { capture: true, once: true });
  try {
    return document.execCommand('copy');
  } finally {
    document.removeEventListener('copy', fill, { capture: true });
  }
}
