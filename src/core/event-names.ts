/** The names of live events, and of those of webhooks. */

/** The events of alarms: only for those who may read these. */
const ALARM_EVENTS = ['alarm-raised', 'alarm-updated', 'alarm-cleared'] as const;

export const EVENT_NAMES = [
  'object-packet',
  'object-update',
  'object-created',
  'object-removed',
  'object-command-req',
  'object-command-res',
  'object-command-err',
  ...ALARM_EVENTS,
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** Whether only those receive it who may read alarms. */
export const isAlarmEvent = (name: string): boolean => (ALARM_EVENTS as readonly string[]).includes(name);

/** The events of packets that contain only presence. In the live feed they are packets like any other. */
export const PRESENCE_EVENTS = ['online', 'offline'] as const;
/** The events of the live feed, and those of presence. */
export const WEBHOOK_EVENTS: readonly string[] = [...EVENT_NAMES, ...PRESENCE_EVENTS];
