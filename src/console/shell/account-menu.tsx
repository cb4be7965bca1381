/** The button of the user, and the menu that it opens. */

import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Caller } from '../state/api.js';
import { usePart } from '../state/parts.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

const choices = signal<typeof import('./account-choices.js') | null>(null);

/** The menu is loaded when somebody points at its button, and opens when it is there. */
export function AccountMenu({ user }: { user: Caller }) {
  const menu = useRef<HTMLDivElement>(null);
  const isNear = useSignal(false);
  const isAsked = useSignal(false);
  const part = usePart(choices, () => import('./account-choices.js'), isNear.value || isAsked.value);
  const name = user.name || user.login;
  useEffect(() => {
    if (part && isAsked.value) menu.current?.showPopover();
  }, [part, isAsked.value]);
  return (
    <>
      <button
        type="button"
        class="avatar"
        popovertarget={part ? 'account-menu' : undefined}
        aria-label={t('menu.open', { name })}
        onPointerEnter={() => write(isNear)(true)}
        onClick={() => part ?? write(isAsked)(true)}
      >
        {initials(name)}
      </button>
      <div id="account-menu" class="menu" popover="auto" ref={menu}>
        {part && <part.AccountChoices user={user} onClose={() => menu.current?.hidePopover()} />}
      </div>
    </>
  );
}

const initials = (name: string): string =>
  name
    .split(/[\s._@-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase())
    .join('');
