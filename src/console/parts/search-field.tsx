/** The field that searches a page. `/` leads to it. */
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './icon.js';

interface SearchFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
}

export function SearchField({ label, value, onInput }: SearchFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  useSearchKey(() => input.current?.select());
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <span class="key">/</span>
    </div>
  );
}

/** From everywhere on the page; not from a dialog, which is in front of it. */
function useSearchKey(focus: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select');
      if (event.key !== '/' || isTyping || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
