/** The words of the console in the user's language, and its numbers, times and dates. */
import { signal } from '@preact/signals';
import type { Catalogue, TextKey } from './english.js';
import { formOf } from './numbers.js';

export type { TextKey };

export type Language = 'en' | 'de';

export const LANGUAGES: readonly [Language, string][] = [
  ['en', 'English'],
  ['de', 'Deutsch'],
];
const CATALOGUES: Readonly<Record<Language, () => Promise<Catalogue>>> = {
  en: async () => (await import('./english.js')).ENGLISH,
  de: async () => (await import('./german.js')).GERMAN,
};
const STORED = 'vigil.language';

export const language = signal<Language>('en');
/** Of the shown language alone; there before the first page is. */
const catalogue = signal({} as Catalogue);

function preferred(): Language {
  const wanted = [localStorage.getItem(STORED), ...navigator.languages].map((one) => one?.slice(0, 2));
  return wanted.find((one): one is Language => one === 'en' || one === 'de') ?? 'en';
}

/** Before the first paint. */
export async function loadLanguage(): Promise<void> {
  await useLanguage(preferred());
}

export async function setLanguage(chosen: Language): Promise<void> {
  localStorage.setItem(STORED, chosen);
  await useLanguage(chosen);
}

async function useLanguage(chosen: Language): Promise<void> {
  catalogue.value = await CATALOGUES[chosen]();
  language.value = chosen;
  document.documentElement.lang = chosen;
}

/** A text; `{name}` in it stands for a value. */
export function t(key: TextKey, values: Record<string, string | number> = {}): string {
  return catalogue.value[key].replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  );
}

/** The text for a number of things: `key.one` or `key.other`. */
export function tn(key: string, count: number): string {
  const form = new Intl.PluralRules(language.value).select(count) === 'one' ? 'one' : 'other';
  return t(`${key}.${form}` as TextKey, { count: formatNumber(count) });
}

// The language decides words; the browser's own setting decides the form of numbers and dates where it is the same language.
function locale(): string {
  return navigator.languages.find((one) => one.startsWith(language.value)) ?? language.value;
}

const formats = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>();

function cached<T extends Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>(
  key: string,
  create: (locale: string) => T,
): T {
  const name = `${locale()} ${key}`;
  const found = (formats.get(name) as T | undefined) ?? create(locale());
  formats.set(name, found);
  return found;
}

export const formatNumber = (value: number, form = formOf(value)): string =>
  cached(`n${JSON.stringify(form)}`, (name) => new Intl.NumberFormat(name, form)).format(value);

export const formatTime = (ms: number): string =>
  cached('t', (name) => new Intl.DateTimeFormat(name, { timeStyle: 'medium' })).format(ms);

export const formatClock = (ms: number, hasSeconds: boolean): string =>
  cached(
    `c${hasSeconds}`,
    (name) => new Intl.DateTimeFormat(name, { timeStyle: hasSeconds ? 'medium' : 'short' }),
  ).format(ms);

export const formatDay = (ms: number): string =>
  cached('d', (name) => new Intl.DateTimeFormat(name, { day: 'numeric', month: 'short' })).format(ms);

export const formatDateTime = (ms: number): string =>
  cached('dt', (name) => new Intl.DateTimeFormat(name, { dateStyle: 'medium', timeStyle: 'medium' })).format(ms);

/** The time alone on the present day, otherwise with the date. */
export const formatMoment = (ms: number, nowMs: number): string =>
  new Date(ms).toDateString() === new Date(nowMs).toDateString() ? formatTime(ms) : formatDateTime(ms);

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** `2 minutes ago`, `in 3 days`, `now`. */
export function formatAge(ms: number, nowMs: number): string {
  const seconds = Math.round((ms - nowMs) / 1_000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  const format = cached('r', (name) => new Intl.RelativeTimeFormat(name, { numeric: 'auto', style: 'short' }));
  return format.format(Math.abs(seconds) < 2 ? 0 : Math.round(seconds / size), unit);
}
