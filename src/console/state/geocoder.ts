/** The geocoder of the operator, as far as every page knows it. */
import { may } from './session.js';

/** Whether the operator has set one up, and the user may ask it for addresses of places, or for places. */
export const mayFind = (what: 'reverse' | 'search'): boolean =>
  document.querySelector<HTMLMetaElement>('meta[name=vigil-geocoder]')?.content === '1' &&
  may('GET', `/geocoder/${what}`);
