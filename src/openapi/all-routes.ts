/** Every declared route: the router and the OpenAPI document are made of them. */
import { ACCOUNT_ROUTES } from '../accounts/account-routes.js';
import { AUTH_ROUTES } from '../accounts/auth-routes.js';
import { MOVE_ROUTES } from '../accounts/move-routes.js';
import { PERMISSION_ROUTES } from '../accounts/permission-routes.js';
import { ALARM_ROUTES } from '../alarms/routes.js';
import { COMMAND_ROUTES } from '../commands/routes.js';
import { SOURCE_ROUTES } from '../devices/sources/routes.js';
import { BUILT_IN_STORE_ROUTES, STORE_ROUTES } from '../entities/routes.js';
import { GEOCODER_ROUTES } from '../geocoder/routes.js';
import { PAST_EVENT_ROUTES } from '../history/past-event-routes.js';
import { SERIES_ROUTES } from '../history/series-routes.js';
import { TRACK_ROUTES } from '../history/track-routes.js';
import { LINK_ROUTES } from '../links/routes.js';
import { VIEW_ROUTES } from '../links/view-routes.js';
import { EVENT_ROUTES } from '../live/routes.js';
import { NOTE_ROUTES } from '../notes/routes.js';
import { NOTIFICATION_ROUTES } from '../notifications/routes.js';
import { PACKET_ROUTES } from '../packets/routes.js';
import type { Route } from '../platform/http/route.js';
import { REPORT_ROUTES } from '../reports/routes.js';
import { SCHEDULE_ROUTES } from '../reports/schedule-routes.js';
import { SETTINGS_ROUTES } from '../settings/routes.js';
import { WEBHOOK_ROUTES } from '../webhooks/routes.js';
import { SERVICE_ROUTES } from './routes.js';

/** The routes of features, in the order of docs/reference/http-api.md. The generic ones of stores come after them. */
export const FEATURE_ROUTES = [
  ...AUTH_ROUTES,
  ...ACCOUNT_ROUTES,
  ...NOTIFICATION_ROUTES,
  ...EVENT_ROUTES,
  ...PAST_EVENT_ROUTES,
  ...SERIES_ROUTES,
  ...PACKET_ROUTES,
  ...TRACK_ROUTES,
  ...REPORT_ROUTES,
  ...SCHEDULE_ROUTES,
  ...COMMAND_ROUTES,
  ...SOURCE_ROUTES,
  ...WEBHOOK_ROUTES,
  ...ALARM_ROUTES,
  ...PERMISSION_ROUTES,
  ...MOVE_ROUTES,
  ...SETTINGS_ROUTES,
  ...GEOCODER_ROUTES,
  ...NOTE_ROUTES,
  ...LINK_ROUTES,
  ...VIEW_ROUTES,
];

/** Every route that answers. */
export const ROUTES: readonly Route<never>[] = [...SERVICE_ROUTES, ...FEATURE_ROUTES, ...STORE_ROUTES];

/** The routes as the OpenAPI document shows them: the generic ones also with the fields of each built-in store. */
export const DOCUMENTED_ROUTES: readonly Route<never>[] = [
  ...SERVICE_ROUTES,
  ...FEATURE_ROUTES,
  ...BUILT_IN_STORE_ROUTES,
  ...STORE_ROUTES,
];
