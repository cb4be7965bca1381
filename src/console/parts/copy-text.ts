/** Copies text, also where browsers have no clipboard for scripts: over plain HTTP. */
import { t } from '../text/language.js';
import { notify } from './notices.js';

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
