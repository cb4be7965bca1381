/** The units of distances that a reader is used to. Pure. */

/** Countries whose road signs are in miles. */
const MILES = new Set(['US', 'GB', 'LR']);

/** `languages` are those of the browser, the preferred one first; `language` is that of the console. */
export function usesMiles(languages: readonly string[], language: string): boolean {
  const regions = languages.map(regionOf);
  // Whoever reads German is not in the country of an American browser.
  const own = languages.findIndex((one, index) => one.split('-')[0] === language && regions[index] !== null);
  const region = own >= 0 ? regions[own] : regions.find((one) => one !== null && isSpokenIn(one, language));
  return MILES.has(region ?? regionOf(maximized(language)) ?? '');
}

function regionOf(tag: string): string | null {
  try {
    return new Intl.Locale(tag).region ?? null;
  } catch {
    return null;
  }
}

/** English is read everywhere. */
const isSpokenIn = (region: string, language: string): boolean => language === 'en' || !MILES.has(region);

function maximized(language: string): string {
  try {
    return new Intl.Locale(language).maximize().toString();
  } catch {
    return language;
  }
}
