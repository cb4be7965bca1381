/** Text as people search it: without regard to case and accents. */

const ASCII = /^[\0-\x7f]*$/;
const ACCENTS = /[\u0300-\u036f]/g;

/** `Zürich` and `ZURICH` are the same, and so are `İstanbul` and `istanbul`, `Straße` and `STRASSE`. */
export const fold = (text: string): string =>
  ASCII.test(text) ? text.toUpperCase() : text.normalize('NFKD').replace(ACCENTS, '').toUpperCase();
