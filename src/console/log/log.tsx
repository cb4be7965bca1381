/** Packets and events of everything that the user sees, as they happen. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { copyText } from '../parts/copy.js';
import { Icon } from '../parts/icon.js';
import { Empty, NotPermitted, notify } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { VirtualList } from '../parts/virtual-list.js';
import { serverNowMs } from '../state/clock.js';
import { objects } from '../state/fleet.js';
import { type LiveEvent, onEvent } from '../state/live.js';
import { pages } from '../state/session.js';
import { write } from '../state/write.js';
import { formatTime, t } from '../text/language.js';

const KEPT = 2_000;
const SHOW_EVERY_MS = 250;
const ROW_PX = 44;
const KINDS = ['all', 'packets', 'events'] as const;
type Kind = (typeof KINDS)[number];

interface Line {
  readonly key: number;
  readonly atMs: number;
  readonly event: LiveEvent;
  readonly about: string;
  readonly text: string;
}

let lastKey = 0;

function toLine(event: LiveEvent): Line {
  const { name, data } = event;
  const id = String(name === 'object-packet' ? data._oid : data.id);
  const about = objects.get(id)?.name ?? id;
  const { _id, _ts, _oid, _gid, id: _own, ...rest } = data;
  return {
    key: ++lastKey,
    atMs: serverNowMs(),
    event,
    about,
    text: JSON.stringify(name === 'object-packet' ? rest : data),
  };
}

interface LogFilter {
  readonly search: Signal<string>;
  readonly kind: Signal<Kind>;
}

function filterLines(lines: readonly Line[], { search, kind }: LogFilter): readonly Line[] {
  const wanted = fold(search.value.trim());
  return lines.filter(({ event, about, text }) => {
    if (kind.value !== 'all' && (kind.value === 'packets') !== (event.name === 'object-packet')) return false;
    return wanted === '' || fold(`${about}\n${event.name}\n${text}`).includes(wanted);
  });
}

/** The newest lines, and older ones that the filter shows: others must not push them out. The newest is first. */
function keepLines(lines: readonly Line[], filter: LogFilter): readonly Line[] {
  const isFiltered = filter.search.value.trim() !== '' || filter.kind.value !== 'all';
  const older = isFiltered ? filterLines(lines.slice(KEPT), filter).slice(0, KEPT) : [];
  return [...lines.slice(0, KEPT), ...older];
}

export function Log() {
  const filter = { search: useSignal(''), kind: useSignal<Kind>('all') };
  const { lines, isPaused, clear } = useLines(filter);
  const shown = filterLines(lines.value, filter);
  return (
    <div class="log">
      <header class="log-head">
        <h1>{t('nav.log')}</h1>
        <LogFilterFields {...filter} />
        <button
          type="button"
          class="button small"
          aria-pressed={isPaused.value}
          onClick={() => write(isPaused)(!isPaused.value)}
        >
          <Icon name={isPaused.value ? 'play' : 'pause'} size={16} /> {t(isPaused.value ? 'log.resume' : 'log.pause')}
        </button>
        <button type="button" class="button small" onClick={clear}>
          {t('log.clear')}
        </button>
      </header>
      {!pages.value.objects && <NotPermitted request="GET /objects/*" />}
      {pages.value.objects && shown.length === 0 && <Empty icon="activity" title={t('log.empty')} />}
      {shown.length > 0 && (
        <VirtualList
          count={shown.length}
          rowPx={ROW_PX}
          label={t('nav.log')}
          renderRow={(index) => <LogRow key={shown[index]?.key} line={shown[index] as Line} />}
        />
      )}
    </div>
  );
}

function LogFilterFields({ search, kind }: LogFilter) {
  return (
    <>
      <SearchField label={t('log.filter')} value={search.value} onInput={write(search)} />
      <fieldset class="chips" aria-label={t('list.filter')}>
        {KINDS.map((one) => (
          <button
            key={one}
            type="button"
            class="chip"
            aria-pressed={kind.value === one}
            onClick={() => write(kind)(one)}
          >
            {t(`log.${one}`)}
          </button>
        ))}
      </fieldset>
    </>
  );
}

/** Collects what comes, the newest first, and shows it four times a second. */
function useLines(filter: LogFilter) {
  const lines = useSignal<readonly Line[]>([]);
  const isPaused = useSignal(false);
  const waiting = useRef<Line[]>([]);
  useEffect(() => {
    const stop = onEvent((event) => {
      waiting.current.push(toLine(event));
      // Seldom, because it goes through all of them.
      if (waiting.current.length > 3 * KEPT)
        waiting.current = [...keepLines(waiting.current.reverse(), filter)].reverse();
    });
    const timer = setInterval(() => {
      if (isPaused.peek() || waiting.current.length === 0) return;
      lines.value = keepLines([...waiting.current.reverse(), ...lines.peek()], filter);
      waiting.current = [];
    }, SHOW_EVERY_MS);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, []);
  return { lines, isPaused, clear: () => write(lines)([]) };
}

function LogRow({ line: { atMs, event, about, text } }: { line: Line }) {
  const shown = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    if (shown.current === null || !(await copyText(JSON.stringify(event.data, null, 2), shown.current))) return;
    getSelection()?.removeAllRanges();
    notify(t('action.copied'));
  };
  return (
    <li class="log-row">
      <time>{formatTime(atMs)}</time>
      <span class={`tag ${event.name === 'object-packet' ? '' : 'good'}`}>{event.name.replace('object-', '')}</span>
      <strong>{about}</strong>
      <code ref={shown}>{text}</code>
      <button type="button" class="icon-button" aria-label={t('log.copy', { name: about })} onClick={() => void copy()}>
        <Icon name="copy" size={16} />
      </button>
    </li>
  );
}
