/** The alarms of a page: loaded, kept current by events, filtered, the most urgent first. */
import { type ReadonlySignal, type Signal, useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { type Alarm, isOpen, isWaiting, onAlarm, SEVERITIES, type Severity } from '../state/alarms.js';
import { listPages } from '../state/api.js';
import { findSeen, keepSeen, useServerReturn } from '../state/fetched.js';
import { objectRevision, objects } from '../state/fleet.js';
import { interruptions, isLost } from '../state/live.js';

export const STATUSES = ['open', 'cleared', 'all'] as const;
export type Status = (typeof STATUSES)[number];

export interface AlarmFilter {
  readonly status: Status;
  readonly severity: Severity | null;
  readonly object: string | null;
  readonly rule: string | null;
  readonly search: string;
}

/** Every field that a row shows; what an alarm says besides is read when it is opened. */
const FIELDS = 'name,severity,status,object,rule,raised,cleared,acknowledged,values,position,_at';
const PAGE = 1_000;
export const MOST_OPEN = 10_000;
export const MOST_CLEARED = 500;
/** Those that come sooner are shown together. */
const SHOW_MS = 200;

export interface AlarmList {
  readonly rows: ReadonlySignal<readonly Alarm[]>;
  /** Without the filter. */
  readonly known: ReadonlySignal<readonly Alarm[]>;
  readonly isLoaded: ReadonlySignal<boolean>;
  /** Whether there are more than are shown. */
  readonly isCut: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<unknown>;
  /** Until when they were current, if the server cannot be reached and these were seen before; null otherwise. */
  readonly seenMs: ReadonlySignal<number | null>;
}

export function useAlarmList(filter: AlarmFilter): AlarmList {
  const all = useRef(new Map<string, Alarm>()).current;
  const revision = useSignal(0);
  const shown = useSignal(filter);
  useEffect(() => {
    shown.value = filter;
  }, [JSON.stringify(filter)]);
  useEffect(
    () =>
      keepCurrent(
        all,
        () => shown.peek().status,
        () => revision.value++,
      ),
    [],
  );
  const loaded = useLoaded(all, filter, revision);
  const known = useComputed<readonly Alarm[]>(() => {
    revision.value;
    return [...all.values()];
  });
  const rows = useComputed<readonly Alarm[]>(() => {
    // The search is in the names of objects, too.
    if (shown.value.search !== '') objectRevision.value;
    return known.value.filter(toTest(shown.value)).sort(byUrgency);
  });
  return { rows, known, ...loaded };
}

type Loaded = Pick<AlarmList, 'isLoaded' | 'isCut' | 'error' | 'seenMs'>;

/** Loads them when the filter asks for others, and when events may have been missed. Offline, it takes what was seen before. */
function useLoaded(all: Map<string, Alarm>, filter: AlarmFilter, revision: Signal<number>): Loaded {
  const isLoaded = useSignal(false);
  const isCut = useSignal(false);
  const error = useSignal<unknown>(null);
  const seenMs = useSignal<number | null>(null);
  const attempt = useSignal(0);
  useServerReturn(error, () => attempt.value++);
  // Of cleared alarms only the newest are there: which these are depends on the filter.
  const { status, search: _search, ...rest } = filter;
  const cleared = status === 'open' ? null : rest;
  const name = `alarms ${JSON.stringify(cleared)}`;
  // Events keep them current for as long as they arrive.
  useEffect(
    () => (isLost.value ? undefined : () => void (isLoaded.peek() && keepSeen(name, [...all.values()]))),
    [name, isLost.value],
  );
  // What is read before events arrive would have to be read again.
  const isReady = interruptions.value > 0 || isLost.value;
  useEffect(() => {
    if (!isReady) return;
    const stop = new AbortController();
    isLoaded.value = false;
    isCut.value = false;
    void load(all, cleared, { signal: stop.signal, onPage: () => revision.value++ }).then(
      (isMore) => {
        if (stop.signal.aborted) return;
        isCut.value = isMore;
        error.value = seenMs.value = null;
        isLoaded.value = true;
        revision.value++;
      },
      (thrown) => {
        if (stop.signal.aborted) return;
        error.value = thrown;
        const [before, atMs] = findSeen<readonly Alarm[]>(name, thrown) ?? [[], null];
        for (const alarm of before) if (!all.has(alarm._id)) all.set(alarm._id, alarm);
        seenMs.value = atMs;
        revision.value++;
      },
    );
    return () => stop.abort();
  }, [name, isReady, interruptions.value, attempt.value]);
  return { isLoaded, isCut, error, seenMs };
}

/** Takes what changes, and shows it a few times a second. Returns a function that stops this. */
function keepCurrent(all: Map<string, Alarm>, statusNow: () => Status, show: () => void): () => void {
  let timer: number | undefined;
  const stop = onAlarm((alarm) => {
    if (statusNow() === 'open' && !isOpen(alarm)) all.delete(alarm._id);
    else all.set(alarm._id, alarm);
    timer ??= setTimeout(() => {
      timer = undefined;
      trim(all);
      show();
    }, SHOW_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/** A page that is open for weeks does not keep all that was cleared. */
function trim(all: Map<string, Alarm>): void {
  if (all.size < 2 * MOST_OPEN) return;
  const cleared = [...all.values()].filter((alarm) => !isOpen(alarm)).sort((one, other) => one.raised - other.raised);
  for (const { _id } of cleared.slice(0, -MOST_CLEARED)) all.delete(_id);
}

interface Loading {
  readonly signal: AbortSignal;
  readonly onPage: () => void;
}

/** Returns whether there are more. What is no longer open, or came live meanwhile, is newer than the pages. */
async function load(
  all: Map<string, Alarm>,
  cleared: Omit<AlarmFilter, 'status' | 'search'> | null,
  { signal, onPage }: Loading,
): Promise<boolean> {
  const seen = new Set<string>();
  const stop = onAlarm(({ _id }) => seen.add(_id));
  const read = async (query: Parameters<typeof listPages>[1]): Promise<number> => {
    let count = 0;
    for await (const page of listPages<Alarm>('/alarms', { only: FIELDS, ...query }, PAGE)) {
      if (signal.aborted) return 0;
      count += page.length;
      for (const alarm of page) {
        if (!seen.has(alarm._id)) all.set(alarm._id, alarm);
        seen.add(alarm._id);
      }
      onPage();
    }
    return count;
  };
  try {
    const open = await read({ where: { status: 'raised' }, limit: MOST_OPEN });
    if (cleared === null) {
      for (const id of all.keys()) if (!signal.aborted && !seen.has(id)) all.delete(id);
      return open >= MOST_OPEN;
    }
    const where = Object.fromEntries(Object.entries(cleared).filter(([, value]) => value !== null));
    const query = { where: { ...where, status: 'cleared' }, sortBy: '-raised', limit: MOST_CLEARED };
    const isMore = (await read(query as Parameters<typeof listPages>[1])) >= MOST_CLEARED;
    for (const id of all.keys()) if (!signal.aborted && !seen.has(id)) all.delete(id);
    return isMore || open >= MOST_OPEN;
  } finally {
    stop();
  }
}

function toTest({ status, severity, object, rule, search }: AlarmFilter): (alarm: Alarm) => boolean {
  const wanted = fold(search.trim());
  return (alarm) =>
    (status === 'all' || (status === 'open') === isOpen(alarm)) &&
    (severity === null || alarm.severity === severity) &&
    (object === null || alarm.object === object) &&
    (rule === null || alarm.rule === rule) &&
    (wanted === '' || fold(`${alarm.name}\n${nameOfObject(alarm.object)}`).includes(wanted));
}

export const nameOfObject = (id: string): string => objects.get(id)?.name ?? id;

/** Open ones first, of these the ones that nobody takes care of, then the worst, then the newest. */
function byUrgency(one: Alarm, other: Alarm): number {
  return rankOf(one) - rankOf(other) || other.raised - one.raised || (one._id < other._id ? -1 : 1);
}

function rankOf(alarm: Alarm): number {
  if (!isOpen(alarm)) return 10;
  return SEVERITIES.indexOf(alarm.severity) + (isWaiting(alarm) ? 0 : 5);
}
