/** What a token may do, as choices that a person understands. */
import { mayGrant } from '../../core/grants.js';
import { may, user } from '../state/session.js';

export type Preset = 'all' | 'read' | 'device' | 'custom';
export const PRESETS: readonly Preset[] = ['device', 'read', 'all', 'custom'];

/** A device is named by either of its identifiers, and its token permits the paths as they are written. */
export function deviceScopes(ids: readonly string[]): string[] {
  return ids
    .map(encodeURIComponent)
    .flatMap((id) => [
      `GET /objects/${id}`,
      `POST /objects/${id}/packets`,
      `GET /objects/${id}/commands/*`,
      `POST /objects/${id}/commands/*/result`,
    ]);
}

/** Whether the user may make a token with these permissions: nobody grants permissions that they lack. */
export function mayMakeToken(scopes: readonly string[]): boolean {
  const caller = user.value;
  return caller != null && may('POST', '/account/tokens') && mayGrant(caller, scopes);
}

export const READ_SCOPES = ['GET /*'];

export const toLines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const DAY_MS = 86_400_000;
/** Lifetimes to choose from, in days. */
export const LIFETIME_DAYS = [7, 30, 90, 365] as const;
export const toLifetimeMs = (days: string): number => Number(days) * DAY_MS;
