/** The names of live events, and of those of webhooks. */

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

/** The events of packets that contain only presence. In the live feed they are packets like any other. */
export const PRESENCE_EVENTS = ['online', 'offline'] as const;
/** The events of the live feed, and those of presence. */
export const WEBHOOK_EVENTS: readonly string[] = [...EVENT_NAMES, ...PRESENCE_EVENTS];
