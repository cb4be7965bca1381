/** The tabs of an object. Each is a file of its own, loaded when it is opened. */
import lazy from 'preact-iso/lazy';
import { loadPage } from '../state/parts.js';
import { loadTexts } from '../text/language.js';

export const TABS = ['live', 'history', 'commands', 'settings'] as const;
export type Tab = (typeof TABS)[number];

export const TAB_PARTS = {
  live: lazy(() => loadPage(() => import('./live-tab.js').then(({ LiveTab }) => LiveTab))),
  history: lazy(() =>
    loadPage(() =>
      Promise.all([import('./history-tab.js'), loadTexts('history')]).then(([{ HistoryTab }]) => HistoryTab),
    ),
  ),
  commands: lazy(() => loadPage(() => import('./commands-tab.js').then(({ CommandsTab }) => CommandsTab))),
  settings: lazy(() => loadPage(() => import('./settings-tab.js').then(({ SettingsTab }) => SettingsTab))),
};

/** The tab of an address: the first one if it names none. */
export const toTab = (name: string | undefined): Tab => TABS.find((one) => one === name) ?? TABS[0];
