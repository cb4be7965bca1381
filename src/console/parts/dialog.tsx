/** A modal dialog: the browser's own, which keeps the focus inside. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { t } from '../text/language.js';
import { Icon } from './icon.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** False for a dialog that has to be answered. */
  readonly canClose?: boolean;
  readonly size?: 'small' | 'medium' | 'large';
}

export function Dialog({ title, onClose, children, canClose = true, size = 'small' }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    const { pathname } = location;
    dialog?.showModal();
    // Otherwise the focus is on the button that closes it.
    const first =
      dialog?.querySelector('[autofocus]') ?? dialog?.querySelector('input:not([type=hidden]), select, textarea');
    if (first instanceof HTMLElement) first.focus();
    return () => {
      dialog?.close();
      // A browser gives the focus back only while the dialog is part of the page. What opened it may be gone, as a removed row is, or
      // go with its page.
      const next = opener?.isConnected && location.pathname === pathname ? opener : document.getElementById('main');
      if (next instanceof HTMLElement) next.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${size}`}
      aria-labelledby={heading}
      // A browser asks once, and closes it when the key is pressed again.
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !canClose) event.preventDefault();
      }}
      onCancel={(event) => {
        event.preventDefault();
        if (canClose) onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        {canClose && (
          <button type="button" class="icon-button" aria-label={t('action.close')} onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}
