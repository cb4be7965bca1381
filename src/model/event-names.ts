/** The names of live events. */

export const EVENT_NAMES = [
  'object-packet',
  'object-update',
  'object-created',
  'object-removed',
  'object-command-req',
  'object-command-res',
  'object-command-err',
] as const;
export type EventName = (typeof EVENT_NAMES)[number];
