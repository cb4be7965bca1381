/** The names of stores' entities in the OpenAPI document. */

const TITLES: Readonly<Record<string, string>> = { objects: 'ControlObject', audit: 'SecurityEvent' };

/** The schema name of a store's entities, such as `ControlObject` for `objects`. */
export function titleOf(storeName: string): string {
  const [first = '', ...rest] = storeName.replace(/s$/, '');
  return TITLES[storeName] ?? first.toUpperCase() + rest.join('');
}
