/** What the user may ask the geocoder of the operator. Apart from the rest: Ctrl-K needs no more of it. */
import { may } from '../state/session.js';

/** Whether the operator has set one up, and the user may ask it for addresses of places, or for places. */
export const mayFind = (what: 'reverse' | 'search'): boolean =>
  document.querySelector<HTMLMetaElement>('meta[name=vigil-geocoder]')?.content === '1' &&
  may('GET', `/geocoder/${what}`);
