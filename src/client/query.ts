/** Converts paths and queries into the spelling of the interface. */
import type { WhereValue } from './generated/api.js';

/** What a query parameter may be given as. */
export type QueryValue = WhereValue | undefined | Date | readonly WhereValue[] | Where;

type Where = { readonly [field: string]: WhereValue | readonly WhereValue[] };

export type Query = { readonly [name: string]: QueryValue };

/** A path with its parameters: `/objects/{id}` with `{id: 'a b'}` is `/objects/a%20b`. */
export function toPath(template: string, parameters: Readonly<Record<string, string>> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name];
    // A browser would resolve dots as folders.
    if (!value || /^\.\.?$/.test(value)) throw new TypeError(`${template}: ${name} cannot be "${value}"`);
    return encodeURIComponent(value);
  });
}

/** A query with its question mark, or nothing. Absent values are left out; `where` becomes one parameter per field. */
export function toQueryString(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (name === 'where') {
      for (const [field, wanted] of Object.entries(value as Where))
        parameters.append(`where.${field}`, toWhere(wanted));
    } else if (isList(value)) parameters.append(name, toList(value));
    else parameters.append(name, String(value instanceof Date ? value.toISOString() : value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

/** Items with commas between them; one that would be read otherwise stands in quotes. */
export const toList = (items: readonly WhereValue[]): string => items.map(toItem).join(',');

function toItem(item: WhereValue): string {
  const text = String(item);
  return /^\s|^"|,|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const isList = (value: unknown): value is readonly WhereValue[] => Array.isArray(value);

function toWhere(wanted: WhereValue | readonly WhereValue[]): string {
  return isList(wanted) ? wanted.map(toWhereText).join(',') : toWhereText(wanted);
}

/** Text in quotes is text, whatever it looks like; with a quote in it, nothing takes it for something else. */
function toWhereText(value: WhereValue): string {
  return typeof value === 'string' && !value.includes('"') ? `"${value}"` : toItem(value);
}
