/** Stores which map the installation shows, and opens the first page with it. */
import { type Routes, request } from '../state/api.js';
import { toAddress } from '../state/location.js';

export type Settings = Routes['GET /api/v1/settings']['answer'];
export type MapChoice = NonNullable<Settings['map']>;

export async function changeMap(map: MapChoice): Promise<void> {
  await request('PATCH /api/v1/settings', { body: { map } });
  // The policy of a page permits what its map loads from other servers, so another map needs another page.
  location.assign(toAddress('/'));
}
