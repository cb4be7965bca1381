/** Weeks and their days in the form of the reader's language. */
import { formatDate, locale } from './language.js';

/** The day with which weeks begin: 0 is Sunday. */
export function firstDayOfWeek(): number {
  type Week = { readonly firstDay: number };
  const found = new Intl.Locale(locale()) as { getWeekInfo?(): Week; readonly weekInfo?: Week };
  return ((found.getWeekInfo?.() ?? found.weekInfo)?.firstDay ?? 1) % 7;
}

export const formatWeekday = (ms: number): string => formatDate(ms, { weekday: 'long', day: 'numeric', month: 'long' });
