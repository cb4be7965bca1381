/** The open alarms that the user sees, as far as every page needs them: how many wait for somebody, and the worst of each object. */
import { computed, effect, signal } from '@preact/signals';
import { type Entity, list, type Routes } from './api.js';
import { interruptions, isLost, onEvent } from './live.js';
import { may } from './session.js';

export type Severity = 'critical' | 'warning' | 'info';
/** The worst one first. */
export const SEVERITIES: readonly Severity[] = ['critical', 'warning', 'info'];

type Fields = Routes['GET /api/v1/alarms/{id}']['answer'];

export interface Alarm extends Entity, Pick<Fields, '_at' | 'values'> {
  readonly rule: string;
  readonly object: string;
  readonly name: string;
  readonly severity: Severity;
  readonly status: 'raised' | 'cleared';
  readonly raised: number;
  readonly cleared: number | null;
  readonly acknowledged?: { readonly time: number; readonly user: string; readonly note: string | null } | null;
  readonly position?: { readonly lat: number; readonly lon: number } | null;
}

export const isOpen = ({ status }: Alarm): boolean => status === 'raised';
/** Whether nobody has taken care of it. */
export const isWaiting = (alarm: Alarm): boolean => isOpen(alarm) && !alarm.acknowledged;

/** What every page knows of an alarm. */
export interface OpenAlarm {
  readonly _id: string;
  readonly object: string;
  readonly name: string;
  readonly severity: Severity;
  readonly raised: number;
  readonly isWaiting: boolean;
}

/** Where the browser keeps whether alarms sound. */
export const SOUND_STORED = 'vigil.alarm-sound';

/** More are not counted. */
const MOST_OPEN = 10_000;
const SHOW_MS = 200;
const RETRY_MS = 5_000;

let open = new Map<string, OpenAlarm>();
/** What came while the alarms are loaded; null for one that was cleared. */
let meanwhile: Map<string, OpenAlarm | null> | null = null;
let run = 0;
let timer: number | undefined;
const revision = signal(0);
const listeners = new Set<(alarm: Alarm) => void>();

/** Calls the function with every alarm that changes. Returns a function that stops this. */
export function onAlarm(listener: (alarm: Alarm) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Takes an alarm as an event or an answer has it. */
export function takeAlarm(alarm: Alarm): void {
  const taken = isOpen(alarm) ? toOpen(alarm) : null;
  meanwhile?.set(alarm._id, taken);
  put(alarm._id, taken);
  for (const listener of listeners) listener(alarm);
}

function toOpen(alarm: Alarm): OpenAlarm {
  const { _id, object, name, severity, raised } = alarm;
  return { _id, object, name, severity, raised, isWaiting: !alarm.acknowledged };
}

function put(id: string, alarm: OpenAlarm | null): void {
  if (alarm === null) open.delete(id);
  else open.set(id, alarm);
  if (timer !== undefined) return;
  // Thousands may come at once.
  timer = setTimeout(() => {
    timer = undefined;
    revision.value++;
  }, SHOW_MS);
}

/** For as long as the page is there. */
export function followAlarms(): void {
  if (!may('GET', '/alarms')) return;
  onEvent(({ name, data }) => {
    if (name.startsWith('alarm-')) takeAlarm(data.alarm as Alarm);
    else if (name === 'object-removed') forgetObject(String(data.id));
  });
  // Without events, what can be read is shown even so.
  effect(() => void ((interruptions.value > 0 || isLost.value) && load()));
}

function forgetObject(id: string): void {
  for (const [alarmId, { object }] of open) if (object === id) put(alarmId, null);
}

async function load(): Promise<void> {
  const mine = ++run;
  const newer = new Map<string, OpenAlarm | null>();
  meanwhile = newer;
  const query = {
    where: { status: 'raised' },
    only: 'object,name,severity,raised,acknowledged.time',
    limit: MOST_OPEN,
  };
  const found = await list<Alarm>('/alarms', query).catch(() => null);
  if (mine !== run) return;
  if (found === null) {
    setTimeout(() => mine === run && void load(), RETRY_MS);
    return;
  }
  meanwhile = null;
  open = new Map(found.map((alarm) => [alarm._id, toOpen(alarm)]));
  for (const [id, alarm] of newer) put(id, alarm);
  revision.value++;
}

/** Whether nobody has taken care of it until now: events of the last instant, which no page shows yet, count. */
export const isStillWaiting = (id: string): boolean => open.get(id)?.isWaiting === true;

/** As they are shown: what computes something of them is computed again when they change. */
export function openAlarms(): Iterable<OpenAlarm> {
  revision.value;
  return open.values();
}

/** How many open alarms nobody has acknowledged. */
export const waitingCount = computed(() => {
  let count = 0;
  for (const { isWaiting } of openAlarms()) if (isWaiting) count++;
  return count;
});

/** The worst open alarm of each object that has one, by `_id` of the object; of equal ones the newest. */
export const worstByObject = computed<ReadonlyMap<string, OpenAlarm>>(() => {
  const worst = new Map<string, OpenAlarm>();
  for (const alarm of openAlarms()) {
    const known = worst.get(alarm.object);
    if (known === undefined || isWorse(alarm, known)) worst.set(alarm.object, alarm);
  }
  return worst;
});

function isWorse(one: OpenAlarm, other: OpenAlarm): boolean {
  const by = SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity);
  return by < 0 || (by === 0 && one.raised > other.raised);
}

/** How many alarms are open, and the most urgent of them: those that nobody has acknowledged, then the worst, then the newest. */
export function urgentAlarms(most: number): { readonly count: number; readonly alarms: readonly OpenAlarm[] } {
  const ranks: OpenAlarm[][] = Array.from({ length: 2 * SEVERITIES.length }, () => []);
  for (const alarm of openAlarms())
    ranks[SEVERITIES.indexOf(alarm.severity) + (alarm.isWaiting ? 0 : SEVERITIES.length)]?.push(alarm);
  const alarms: OpenAlarm[] = [];
  for (const rank of ranks) {
    if (alarms.length >= most) break;
    alarms.push(...rank.sort((one, other) => other.raised - one.raised).slice(0, most - alarms.length));
  }
  return { count: open.size, alarms };
}
