/** Finds objects, pages and actions from everywhere. Loaded when it is first opened. */
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { accessTabs } from '../entities/access-tabs.js';
import { pathOf, readableStores, titleOfStore } from '../entities/data-tabs.js';
import { loadSavedViews, pathOfView, savedViews } from '../home/saved-views.js';
import { Dialog } from '../parts/dialog.js';
import { Icon, type IconName } from '../parts/icon.js';
import { keyOf, ordered } from '../state/by-name.js';
import type { FleetObject } from '../state/fleet.js';
import { useLocation } from '../state/location.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { type TextKey, t, tn } from '../text/language.js';
import { mayFind } from '../where/may-find.js';

const MOST_OBJECTS = 20;
const ACCOUNT = ['profile', 'channels', 'tokens', 'sessions'] as const;

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

interface Entry {
  readonly text: string;
  readonly note: string;
  readonly icon: IconName;
  readonly path: string;
}

export interface PaletteProps {
  /** Those in the navigation. */
  readonly pages: readonly { readonly path: string; readonly text: TextKey; readonly icon: IconName }[];
  readonly onClose: () => void;
}

export function Palette({ pages, onClose }: PaletteProps) {
  const { route } = useLocation();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const text = useSignal('');
  const at = useSignal(0);
  // Without an answer, everything else is found.
  useEffect(() => void loadSavedViews().catch(() => undefined), []);
  const entries = useComputed(() => find(text.value, pages)).value;
  const active = Math.min(at.value, entries.length - 1);
  const open = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    route(entry.path);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (event.isComposing || (step === undefined && event.key !== 'Enter')) return;
    event.preventDefault();
    if (step === undefined) open(entries[active]);
    else if (entries.length > 0) at.value = (active + step + entries.length) % entries.length;
    list.current?.children[at.value]?.scrollIntoView({ block: 'nearest' });
  };
  return (
    <Dialog title={t('palette.title')} onClose={onClose} size="medium">
      <div class="field">
        <input
          type="text"
          role="combobox"
          autocomplete="off"
          aria-label={t('palette.title')}
          aria-expanded={entries.length > 0}
          aria-controls={id}
          aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
          placeholder={t('palette.placeholder')}
          onInput={({ currentTarget }) => {
            write(text)(currentTarget.value);
            write(at)(0);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <p role="status" class={entries.length === 0 ? 'quiet' : 'visually-hidden'}>
        {entries.length === 0 ? t('list.nothingFound', { text: text.value }) : tn('palette.count', entries.length)}
      </p>
      <div ref={list} id={id} class="palette" role="listbox" aria-label={t('palette.title')}>
        {entries.map((entry, index) => (
          <Option
            key={`${entry.path} ${entry.text} ${entry.note}`}
            id={`${id}-${index}`}
            entry={entry}
            isActive={index === active}
            onOpen={() => open(entry)}
          />
        ))}
      </div>
    </Dialog>
  );
}

interface OptionProps {
  readonly id: string;
  readonly entry: Entry;
  readonly isActive: boolean;
  readonly onOpen: () => void;
}

const Option = ({ id, entry, isActive, onOpen }: OptionProps) => (
  // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
  <div id={id} role="option" tabIndex={-1} aria-selected={isActive} onClick={onOpen}>
    <Icon name={entry.icon} size={16} />
    <span class="palette-text">{entry.text}</span>
    <span class="palette-text quiet">{entry.note}</span>
  </div>
);

/** The objects first whose name begins with the text, then saved views, actions and pages, then the other objects. */
function find(text: string, pages: PaletteProps['pages']): Entry[] {
  const wanted = fold(text.trim());
  const others = [...views(), ...actions(), ...pagesOf(pages)].filter((entry) => fold(entry.text).includes(wanted));
  if (wanted === '') return others;
  const found = objectsWith(wanted);
  const isFirst = (object: FleetObject): boolean => keyOf(object).search.startsWith(wanted);
  const first = found.filter(isFirst);
  const [best] = first;
  return [
    ...first.map(toEntry),
    ...(best === undefined || first.length > 1 ? [] : partsOf(best)),
    ...others,
    ...found.filter((object) => !isFirst(object)).map(toEntry),
    ...placesOf(text.trim()),
  ];
}

function objectsWith(wanted: string): FleetObject[] {
  const first: FleetObject[] = [];
  const others: FleetObject[] = [];
  for (const object of ordered.value) {
    const { search } = keyOf(object);
    if (search.startsWith(wanted)) first.push(object);
    else if (others.length < MOST_OBJECTS && search.includes(wanted)) others.push(object);
    if (first.length === MOST_OBJECTS) break;
  }
  return [...first, ...others].slice(0, MOST_OBJECTS);
}

const toEntry = ({ _id, id, name }: FleetObject): Entry => ({
  text: name,
  note: id === name ? t('palette.object') : id,
  icon: 'map',
  path: `/?object=${_id}`,
});

/** The objects around what may be an address, or latitude and longitude. */
function placesOf(text: string): Entry[] {
  const isPlace = mayFind('search') || /^-?\d[\d.]*\s*[,;\s]\s*-?\d[\d.]*$/.test(text);
  const path = `/nearest?${new URLSearchParams({ to: text })}`;
  return isPlace ? [{ text: t('palette.near', { place: text }), note: t('palette.action'), icon: 'map', path }] : [];
}

/** What is done with the only object that is found. */
function partsOf({ _id, name }: FleetObject): Entry[] {
  const path = `/objects/${_id}`;
  const parts: Entry[] = [
    { text: t('palette.open', { name }), note: '', icon: 'box', path: `${path}/live` },
    { text: t('palette.history', { name }), note: '', icon: 'activity', path: `${path}/history` },
  ];
  if (!may('POST', `${path}/commands/any`)) return parts;
  return [...parts, { text: t('palette.command', { name }), note: '', icon: 'play', path: `${path}/commands` }];
}

const views = (): Entry[] =>
  (savedViews.value ?? []).map((view) => ({
    text: view.name,
    note: t('palette.view'),
    icon: 'list',
    path: pathOfView(view),
  }));

function actions(): Entry[] {
  if (!may('POST', '/objects')) return [];
  return [{ text: t('palette.add'), note: t('palette.action'), icon: 'plus', path: '/welcome' }];
}

function pagesOf(pages: PaletteProps['pages']): Entry[] {
  const note = t('palette.page');
  const toPage = (text: string, icon: IconName, path: string): Entry => ({ text, note, icon, path });
  return [
    ...pages.map(({ path, text, icon }) => toPage(t(text), icon, path)),
    ...(may('GET', '/objects') ? [toPage(t('palette.compare'), 'activity', '/compare')] : []),
    ...readableStores().map((name) => toPage(titleOfStore(name), 'database', pathOf(name))),
    ...accessTabs().map(({ path, text }) => toPage(text, 'shield', path)),
    ...ACCOUNT.map((name) => toPage(`${t('nav.account')} · ${t(`account.${name}`)}`, 'key', `/account/${name}`)),
  ];
}
