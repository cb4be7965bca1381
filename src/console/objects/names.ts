/** Names of parameters in the address of a page. */

/** Names may contain commas. */
export const textOfNames = (names: readonly string[]): string => names.map(encodeURIComponent).join();

/** Null if the address says nothing that can be read. */
export function namesIn(text: string | undefined): readonly string[] | null {
  try {
    return text === undefined ? null : text.split(',').filter(Boolean).map(decodeURIComponent);
  } catch {
    return null;
  }
}
