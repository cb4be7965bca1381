/** The sections of a page, each with an address of its own. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { toAddress } from '../state/location.js';
import { useTitle } from '../state/title.js';

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly { readonly path: string; readonly text: string }[];
  readonly path: string;
}

export function Tabs({ label, tabs, path }: TabsProps) {
  const element = useRef<HTMLElement>(null);
  const current = tabs.find((tab) => tab.path === path);
  useTitle(current ? `${label} · ${current.text}` : label);
  useEffect(() => {
    const shown = element.current?.querySelector('[aria-current]');
    // Not all fit on a phone.
    shown?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [path, tabs.length]);
  return (
    <nav class="tabs" aria-label={label} ref={element}>
      {tabs.map((tab) => (
        <a key={tab.path} href={toAddress(tab.path)} aria-current={tab.path === path ? 'page' : undefined}>
          {tab.text}
        </a>
      ))}
    </nav>
  );
}

interface SectionProps {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly action?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, about, action, children }: SectionProps) {
  return (
    <section class="section">
      <header class="section-head">
        <div>
          <h2>{title}</h2>
          {about && <p class="quiet">{about}</p>}
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}
