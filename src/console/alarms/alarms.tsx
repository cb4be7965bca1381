/** The alarms, the most urgent first, and everything about the one that is opened. */
import { type Signal, signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Problem, useWorkOfEach } from '../parts/form.js';
import { Icon, Outline } from '../parts/icon.js';
import { Empty, NotPermitted, notify, Skeleton } from '../parts/notices.js';
import { VirtualList } from '../parts/virtual-list.js';
import { type Alarm, isWaiting } from '../state/alarms.js';
import { toAddress, useLocation } from '../state/location.js';
import { loadPart } from '../state/parts.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t, tn } from '../text/language.js';
import { acknowledgeAll } from './alarm-actions.js';
import { AlarmFilters, filterOf, toQuery } from './alarm-filters.js';
import { type AlarmFilter, type AlarmList, MOST_CLEARED, MOST_OPEN, useAlarmList } from './alarm-list.js';
import { AlarmRow } from './alarm-row.js';
import { useKeys } from './keys.js';
import { hasSound, isMuted, isSounding, setSound } from './sound.js';

const ROW_PX = 64;
// From Lucide (ISC licence).
const SPEAKER =
  'M11 4.7a.7.7 0 0 0-1.2-.5L6.4 7.6a1.4 1.4 0 0 1-1 .4H3a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2.4a1.4 1.4 0 0 1 1 .4l3.4 3.4a.7.7 0 0 0 1.2-.5Z';
const WAVES = 'M16 9a5 5 0 0 1 0 6M19.4 18.4a9 9 0 0 0 0-12.8';
const CROSS = 'M22 9l-6 6M16 9l6 6';

export function Alarms({ id = '' }: { id?: string }) {
  if (!may('GET', '/alarms')) return <NotPermitted request="GET /alarms/*" />;
  return <AlarmPage id={id} />;
}

function AlarmPage({ id }: { id: string }) {
  const { query, route } = useLocation();
  const filter = filterOf(query);
  const list = useAlarmList(filter);
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const work = useWorkOfEach();
  const byKey = useRef(false);
  const rows = list.rows.value;
  const open = (next: string | null, change: Partial<AlarmFilter> = {}): void => {
    const path = next === null || next === '' ? '/alarms' : `/alarms/${next}`;
    route(`${path}${toQuery({ ...filter, ...change })}`, true);
  };
  // What is gone, or acknowledged, is chosen no longer.
  const selected = rows.filter((alarm) => chosen.value.has(alarm._id) && isWaiting(alarm));
  const acknowledgeThese = (alarms: readonly Alarm[]): void => {
    const ids = alarms.map(({ _id }) => _id);
    void work.run(ids, async (idle) => {
      const count = await acknowledgeAll(alarms.filter(({ _id }) => idle.includes(_id)));
      chosen.value = new Set([...chosen.value].filter((id) => !idle.includes(id)));
      notify(tn('alarms.acknowledged', count));
    });
  };
  useKeys({ rows, id, selected, byKey, open, acknowledgeThese });
  return (
    <div class={`alarms${id === '' ? '' : ' has-detail'}`}>
      <Head />
      <AlarmFilters filter={filter} alarms={list.known.value} onChange={(change) => open(id, change)} />
      <div class="alarms-body">
        <section class="alarms-list" aria-label={t('nav.alarms')}>
          <Problem error={list.error.value ?? work.error.value} seenMs={list.seenMs.value} />
          <Selection
            rows={rows}
            isLoaded={isKnown(list)}
            chosen={chosen}
            selected={selected}
            onAcknowledge={acknowledgeThese}
          />
          <Rows
            list={list}
            id={id}
            chosen={chosen}
            byKey={byKey}
            isFiltered={toQuery(filter) !== ''}
            onOpen={(next) => open(next)}
          />
        </section>
        {id !== '' && <Detail id={id} onClose={() => open(null)} />}
      </div>
    </div>
  );
}

/** It is loaded when the first alarm is opened. */
function Detail(props: { id: string; onClose: () => void }) {
  useEffect(() => void load(), []);
  const { value: loaded } = part;
  return loaded === null ? <Skeleton rows={5} /> : <loaded.AlarmDetail {...props} />;
}

const part = signal<typeof import('./alarm-detail.js') | null>(null);

async function load(): Promise<void> {
  part.value ??= await loadPart(() => import('./alarm-detail.js'));
}

function Head() {
  return (
    <header class="alarms-head">
      <h1>{t('nav.alarms')}</h1>
      <button
        type="button"
        class="button small"
        aria-pressed={hasSound.value}
        data-sounding={isSounding.value || undefined}
        onClick={() => setSound(!hasSound.value)}
      >
        <Outline path={SPEAKER + (hasSound.value ? WAVES : CROSS)} size={16} />
        {t(hasSound.value ? 'alarms.soundOn' : 'alarms.soundOff')}
      </button>
      {may('GET', '/rules') && (
        <a class="button small" href={toAddress('/rules')}>
          <Icon name="settings" size={16} /> {t('alarms.rules')}
        </a>
      )}
      {hasSound.value && isMuted.value && <span class="quiet">{t('alarms.muted')}</span>}
    </header>
  );
}

interface SelectionProps {
  readonly rows: readonly Alarm[];
  readonly isLoaded: boolean;
  readonly chosen: Signal<ReadonlySet<string>>;
  readonly selected: readonly Alarm[];
  readonly onAcknowledge: (alarms: readonly Alarm[]) => void;
}

/** How many there are, and what is done with many at once. */
function Selection({ rows, isLoaded, chosen, selected, onAcknowledge }: SelectionProps) {
  const waiting = rows.filter(isWaiting);
  const mayMany = may('POST', '/alarms/acknowledge');
  const choose = (isAll: boolean): void => write(chosen)(new Set(isAll ? waiting.map(({ _id }) => _id) : []));
  return (
    <div class="alarms-selection">
      {mayMany && waiting.length > 0 && (
        <label class="alarm-check">
          <input
            type="checkbox"
            aria-label={t('alarms.chooseAll')}
            checked={selected.length === waiting.length}
            onChange={(event) => choose(event.currentTarget.checked)}
          />
        </label>
      )}
      <p role="status">
        {selected.length > 0 && tn('alarms.chosen', selected.length)}
        {selected.length === 0 &&
          (isLoaded || rows.length > 0) &&
          `${tn('alarms.count', rows.length)} · ${tn('alarms.waiting', waiting.length)}`}
      </p>
      {selected.length > 0 && (
        <button type="button" class="button small primary" onClick={() => onAcknowledge(selected)}>
          <Icon name="check" size={16} /> {t('alarm.acknowledge')}
        </button>
      )}
    </div>
  );
}

interface RowsProps {
  readonly list: AlarmList;
  readonly id: string;
  readonly chosen: Signal<ReadonlySet<string>>;
  /** Whether a key has opened the current one. */
  readonly byKey: { current: boolean };
  readonly isFiltered: boolean;
  readonly onOpen: (id: string) => void;
}

/** Whether these are all, now or when they were seen. */
const isKnown = ({ isLoaded, seenMs }: AlarmList): boolean => isLoaded.value || seenMs.value !== null;

function Rows({ list, id, chosen, byKey, isFiltered, onOpen }: RowsProps) {
  const { error, isCut } = list;
  const { value: all } = list.rows;
  const choose = (one: string, isChosen: boolean): void => {
    const next = new Set(chosen.peek());
    if (isChosen) next.add(one);
    else next.delete(one);
    write(chosen)(next);
  };
  if (!isKnown(list) && all.length === 0) return error.value ? null : <Skeleton rows={6} />;
  if (all.length === 0) return <Nothing isFiltered={isFiltered} />;
  return (
    <>
      <VirtualList
        count={all.length}
        rowPx={ROW_PX}
        label={t('nav.alarms')}
        shown={all.findIndex(({ _id }) => _id === id)}
        renderRow={(index) => {
          const alarm = all[index] as Alarm;
          const mayChoose = isWaiting(alarm) && may('POST', '/alarms/acknowledge');
          return (
            <AlarmRow
              key={alarm._id}
              alarm={alarm}
              isCurrent={alarm._id === id}
              isChosen={mayChoose && chosen.value.has(alarm._id)}
              takesFocus={() => byKey.current}
              onOpen={() => {
                byKey.current = false;
                onOpen(alarm._id);
              }}
              onChoose={mayChoose ? (isChosen) => choose(alarm._id, isChosen) : null}
            />
          );
        }}
      />
      {isCut.value && (
        <p class="alarms-cut">
          {t('alarms.cut', { open: formatNumber(MOST_OPEN), cleared: formatNumber(MOST_CLEARED) })}
        </p>
      )}
    </>
  );
}

/** Good news, unless nothing watches. */
function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty icon="search" title={t('alarms.nothingFound')}>
        <a class="button" href={toAddress('/alarms')}>
          {t('alarms.showAll')}
        </a>
      </Empty>
    );
  }
  return (
    <Empty icon="check" title={t('alarms.none')}>
      <p>{t('alarms.noneAbout')}</p>
    </Empty>
  );
}
