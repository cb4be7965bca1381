/** The words of the console in the user's language, and its numbers, times and dates. */
import { signal } from '@preact/signals';
import type { Catalogue, TextKey, Texts } from './english.js';
import { formOf } from './numbers.js';

export type { TextKey };

export type Language = 'en' | 'de';

export const LANGUAGES: readonly [Language, string][] = [
  ['en', 'English'],
  ['de', 'Deutsch'],
];
/** Each file of texts exports its catalogue alone. */
const CATALOGUES: Readonly<Record<Language, () => Promise<Readonly<Record<string, Catalogue>>>>> = {
  en: () => import('./english.js'),
  de: () => import('./german.js'),
};
/** Loads the texts of one topic. */
export type TextLoader = Readonly<Record<Language, () => Promise<Readonly<Record<string, object>>>>>;

/** Further texts, which are loaded with the pages and dialogs that need them. Few others are named where they are needed: every page has this list. */
const MORE = {
  /** Of objects, the account, the log and the welcome. */
  pages: {
    en: () => import('./english-pages.js'),
    de: () => import('./german-pages.js'),
  },
  alarms: {
    en: () => import('./english-alarms.js'),
    de: () => import('./german-alarms.js'),
  },
  /** Of the first page. */
  home: {
    en: () => import('./english-home.js'),
    de: () => import('./german-home.js'),
  },
  compare: {
    en: () => import('./english-compare.js'),
    de: () => import('./german-compare.js'),
  },
  /** Of stores and of administration. */
  data: {
    en: () => import('./english-data.js'),
    de: () => import('./german-data.js'),
  },
  history: {
    en: () => import('./english-history.js'),
    de: () => import('./german-history.js'),
  },
  reports: {
    en: () => import('./english-reports.js'),
    de: () => import('./german-reports.js'),
  },
  rules: {
    en: () => import('./english-rules.js'),
    de: () => import('./german-rules.js'),
  },
  /** Of the search for objects, pages and actions. */
  palette: {
    en: () => import('./english-palette.js'),
    de: () => import('./german-palette.js'),
  },
  /** Of tiles. */
  views: {
    en: () => import('./english-views.js'),
    de: () => import('./german-views.js'),
  },
  /** Of where objects are. */
  where: {
    en: () => import('./english-where.js'),
    de: () => import('./german-where.js'),
  },
} as const satisfies Readonly<Record<string, TextLoader>>;
export type MoreTexts = keyof typeof MORE;
const STORED = 'vigil.language';

export const language = signal<Language>('en');
/** Of the shown language alone; there before the first page is. */
const catalogue = signal({} as Texts);
const needed = new Set<TextLoader>();
/** Which is being loaded, if it is not shown yet. */
let wanted: Language | undefined;

function preferred(): Language {
  const asked = [localStorage.getItem(STORED), ...navigator.languages].map((one) => one?.slice(0, 2));
  return asked.find((one): one is Language => one === 'en' || one === 'de') ?? 'en';
}

/** Before anything else: libraries of charts and maps take the browser's language as it is, and fail with one that is no tag. */
export function mendBrowserLanguage(): void {
  if (!isTag(navigator.language)) Object.defineProperty(navigator, 'language', { value: 'en', configurable: true });
}

/** Before the first paint. */
export async function loadLanguage(): Promise<void> {
  await useLanguage(preferred());
}

export async function setLanguage(chosen: Language): Promise<void> {
  localStorage.setItem(STORED, chosen);
  await useLanguage(chosen);
}

/** Before a page or a dialog that needs them. */
export async function loadTexts(more: MoreTexts | TextLoader): Promise<void> {
  needed.add(typeof more === 'string' ? MORE[more] : more);
  await useLanguage(wanted ?? preferred());
}

async function useLanguage(chosen: Language): Promise<void> {
  wanted = chosen;
  const files = await Promise.all([CATALOGUES[chosen](), ...[...needed].map((more) => more[chosen]())]);
  if (wanted !== chosen) return;
  // Calls overlap: one that began before a page needed more texts may end after it.
  catalogue.value = Object.assign(
    {},
    language.value === chosen ? catalogue.value : {},
    ...files.flatMap(Object.values),
  );
  language.value = chosen;
  document.documentElement.lang = chosen;
}

/** A text; `{name}` in it stands for a value. */
export function t(key: TextKey, values: Record<string, string | number> = {}): string {
  return catalogue.value[key].replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  );
}

/** Whether there is a text for what the server names. */
export const hasText = (key: string): boolean => Object.hasOwn(catalogue.value, key);

/** The text for a number of things: `key.one` or `key.other`. */
export function tn(key: string, count: number): string {
  const rules = cached(`p${language.value}`, () => new Intl.PluralRules(language.value));
  return t(`${key}.${rules.select(count) === 'one' ? 'one' : 'other'}` as TextKey, { count: formatNumber(count) });
}

// The language decides words; the browser's own setting decides the form of numbers and dates where it is the same language.
export function locale(): string {
  const isUsable = (one: string): boolean => one.split('-')[0] === language.value && isTag(one);
  return navigator.languages.find(isUsable) ?? language.value;
}

/** Browsers of systems without a language name one that is no language tag, such as `en-US@posix`. */
function isTag(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length > 0;
  } catch {
    return false;
  }
}

type Format = Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat | Intl.PluralRules;

const formats = new Map<string, Format>();

function cached<T extends Format>(key: string, create: (locale: string) => T): T {
  const name = `${locale()} ${key}`;
  const found = (formats.get(name) as T | undefined) ?? create(locale());
  formats.set(name, found);
  return found;
}

/** Whole numbers up to this one have the same form everywhere. */
const MOST_SIMPLE = 999;

export function formatNumber(value: number, form?: Intl.NumberFormatOptions): string {
  if (form === undefined && Number.isInteger(value) && value >= 0 && value <= MOST_SIMPLE) return String(value);
  const shown = form ?? formOf(value);
  return cached(`n${JSON.stringify(shown)}`, (name) => new Intl.NumberFormat(name, shown)).format(value);
}

/** The first number in the form of a language takes browsers as long as a page: before it is needed, while the server answers. */
export const prepareNumbers = (): unknown => formatNumber(0.5);

export const formatDate = (ms: number, form: Intl.DateTimeFormatOptions): string =>
  cached(`d${JSON.stringify(form)}`, (name) => new Intl.DateTimeFormat(name, form)).format(ms);

export const formatTime = (ms: number): string => formatDate(ms, { timeStyle: 'medium' });

export const formatClock = (ms: number, hasSeconds: boolean): string =>
  formatDate(ms, { timeStyle: hasSeconds ? 'medium' : 'short' });

export const formatDay = (ms: number): string => formatDate(ms, { day: 'numeric', month: 'short' });

export const formatDateTime = (ms: number): string => formatDate(ms, { dateStyle: 'medium', timeStyle: 'medium' });

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
