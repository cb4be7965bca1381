/** The texts of the parts of a history that are not always shown, which are loaded with the first of them. */
import { loadTexts, type TextLoader } from '../text/language.js';

const PARTS_TEXTS: TextLoader = {
  en: () => import('../text/english-parts.js'),
  de: () => import('../text/german-parts.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(PARTS_TEXTS);
