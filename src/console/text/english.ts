/** The texts of every page in English; every other language has the same keys. */

import type { ENGLISH_ALARMS } from './english-alarms.js';
import type { ENGLISH_BULK } from './english-bulk.js';
import type { ENGLISH_CHANNELS } from './english-channels.js';
import type { ENGLISH_COMPARE } from './english-compare.js';
import type { ENGLISH_DATA } from './english-data.js';
import type { ENGLISH_DIALOGS } from './english-dialogs.js';
import type { ENGLISH_HISTORY } from './english-history.js';
import type { ENGLISH_HOME } from './english-home.js';
import type { ENGLISH_IMPORT } from './english-import.js';
import type { ENGLISH_LINKS } from './english-links.js';
import type { ENGLISH_MEANINGS } from './english-meanings.js';
import type { ENGLISH_NOTES } from './english-notes.js';
import type { ENGLISH_PAGES } from './english-pages.js';
import type { ENGLISH_PALETTE } from './english-palette.js';
import type { ENGLISH_PARTS } from './english-parts.js';
import type { ENGLISH_PROPOSALS } from './english-proposals.js';
import type { ENGLISH_REPORTS } from './english-reports.js';
import type { ENGLISH_ROLES } from './english-roles.js';
import type { ENGLISH_RULES } from './english-rules.js';
import type { ENGLISH_SCHEDULES } from './english-schedules.js';
import type { ENGLISH_SETTINGS } from './english-settings.js';
import type { ENGLISH_SHEET } from './english-sheet.js';
import type { ENGLISH_VIEWS } from './english-views.js';
import type { ENGLISH_WALL } from './english-wall.js';
import type { ENGLISH_WHERE } from './english-where.js';

export const ENGLISH = {
  'account.channels': 'Notifications',
  'account.profile': 'Profile',
  'account.sessions': 'Sessions',
  'account.tokens': 'Tokens',
  'action.cancel': 'Cancel',
  'action.close': 'Close',
  'action.copied': 'Copied',
  'action.copy': 'Copy',
  'action.remove': 'Remove',
  'action.retry': 'Try again',
  'action.save': 'Save',
  'action.selected': 'The browser does not copy it. It is selected: press Ctrl-C or ⌘-C.',
  'card.noPacket': 'This object has not sent anything yet.',
  'card.open': 'Open',
  'card.position': 'Position',
  'entity.group': 'Group',
  'error.forbidden': 'You do not have permission to do this.',
  'error.needs': 'An administrator can add this line to your role:',
  'error.requestId': 'Request {id}',
  'error.tooMany': 'Too many requests or failed attempts. Wait a moment and try again.',
  'error.unavailable': 'The service is busy or its database is unavailable. Try again in a moment.',
  'filter.all': 'All',
  'list.count.one': '{count} object',
  'list.count.other': '{count} objects',
  'list.filter': 'Show',
  'list.label': 'Objects',
  'list.nothing': 'No objects match.',
  'list.nothingFound': 'Nothing found for “{text}”.',
  'list.search': 'Search by name or id',
  'live.time': 'Time',
  'login.login': 'Login',
  'login.password': 'Password',
  'map.impossible': 'The map needs WebGL, which this browser does not offer.',
  'map.label': 'Map',
  'map.missing': 'The map background cannot be loaded at the moment. Everything else works.',
  'map.zoomIn': 'Zoom in',
  'map.zoomOut': 'Zoom out',
  'menu.language': 'Language',
  'menu.logout': 'Log out',
  'menu.open': 'Account of {name}',
  'menu.theme': 'Theme',
  'nav.access': 'Access',
  'nav.account': 'Account',
  'nav.alarms': 'Alarms',
  'nav.brand': 'Vigil, home',
  'nav.data': 'Data',
  'nav.label': 'Pages',
  'nav.log': 'Log',
  'nav.map': 'Map',
  'nav.reports': 'Reports',
  'nav.skip': 'Skip to content',
  'nav.waiting': 'not acknowledged',
  'notFound.home': 'To the map',
  'notFound.title': 'There is no such page',
  'offline.events': 'Events do not arrive.',
  'offline.page': 'This page has not been loaded. It is shown as soon as the server can be reached.',
  'offline.server': 'The server cannot be reached.',
  'offline.until': 'What you see is from {moment}',
  'profile.details': 'Details',
  'profile.email': 'Email',
  'profile.saved': 'Saved',
  'settings.removeTitle': 'Remove {name}?',
  'severity.critical': 'Critical',
  'severity.info': 'Info',
  'severity.warning': 'Warning',
  'sharing.user': 'User',
  'state.never': 'no packet yet',
  'state.offline': 'Offline',
  'state.online': 'Online',
  'state.unknown': 'Was online',
  'status.connecting': 'Connecting',
  'status.live': 'Live',
  'status.lost': 'Offline',
  'tab.commands': 'Commands',
  'tab.history': 'History',
  'theme.auto': 'System',
  'theme.dark': 'Dark',
  'theme.light': 'Light',
  'tokens.scopesHint': 'One per line: METHOD /path/pattern',
  'unit.day.one': '{count} day',
  'unit.day.other': '{count} days',
  'value.false': 'No',
  'value.true': 'Yes',
  'welcome.id': 'Id',
} as const;

export type Catalogue = Readonly<Record<keyof typeof ENGLISH, string>>;
/** The texts that are loaded with the pages and dialogs that need them. */
export type PageCatalogue = Readonly<Record<keyof typeof ENGLISH_PAGES, string>>;
export type DataCatalogue = Readonly<Record<keyof typeof ENGLISH_DATA, string>>;
export type DialogCatalogue = Readonly<Record<keyof typeof ENGLISH_DIALOGS, string>>;
export type HomeCatalogue = Readonly<Record<keyof typeof ENGLISH_HOME, string>>;
export type ReportCatalogue = Readonly<Record<keyof typeof ENGLISH_REPORTS, string>>;
export type ScheduleCatalogue = Readonly<Record<keyof typeof ENGLISH_SCHEDULES, string>>;
export type SettingsCatalogue = Readonly<Record<keyof typeof ENGLISH_SETTINGS, string>>;
export type AlarmCatalogue = Readonly<Record<keyof typeof ENGLISH_ALARMS, string>>;
export type HistoryCatalogue = Readonly<Record<keyof typeof ENGLISH_HISTORY, string>>;
export type RuleCatalogue = Readonly<Record<keyof typeof ENGLISH_RULES, string>>;
export type ChannelCatalogue = Readonly<Record<keyof typeof ENGLISH_CHANNELS, string>>;
export type PaletteCatalogue = Readonly<Record<keyof typeof ENGLISH_PALETTE, string>>;
export type BulkCatalogue = Readonly<Record<keyof typeof ENGLISH_BULK, string>>;
export type ViewsCatalogue = Readonly<Record<keyof typeof ENGLISH_VIEWS, string>>;
export type ImportCatalogue = Readonly<Record<keyof typeof ENGLISH_IMPORT, string>>;
export type ProposalCatalogue = Readonly<Record<keyof typeof ENGLISH_PROPOSALS, string>>;
export type SheetCatalogue = Readonly<Record<keyof typeof ENGLISH_SHEET, string>>;
export type LinkCatalogue = Readonly<Record<keyof typeof ENGLISH_LINKS, string>>;
export type CompareCatalogue = Readonly<Record<keyof typeof ENGLISH_COMPARE, string>>;
export type NoteCatalogue = Readonly<Record<keyof typeof ENGLISH_NOTES, string>>;
export type PartsCatalogue = Readonly<Record<keyof typeof ENGLISH_PARTS, string>>;
export type MeaningCatalogue = Readonly<Record<keyof typeof ENGLISH_MEANINGS, string>>;
export type RoleCatalogue = Readonly<Record<keyof typeof ENGLISH_ROLES, string>>;
export type WallCatalogue = Readonly<Record<keyof typeof ENGLISH_WALL, string>>;
export type WhereCatalogue = Readonly<Record<keyof typeof ENGLISH_WHERE, string>>;
export type Texts = Catalogue &
  ChannelCatalogue &
  PaletteCatalogue &
  HomeCatalogue &
  PageCatalogue &
  DataCatalogue &
  DialogCatalogue &
  ReportCatalogue &
  RoleCatalogue &
  ImportCatalogue &
  ProposalCatalogue &
  SheetCatalogue &
  ScheduleCatalogue &
  SettingsCatalogue &
  HistoryCatalogue &
  AlarmCatalogue &
  RuleCatalogue &
  BulkCatalogue &
  ViewsCatalogue &
  LinkCatalogue &
  WallCatalogue &
  WhereCatalogue &
  MeaningCatalogue &
  NoteCatalogue &
  PartsCatalogue &
  CompareCatalogue;
export type TextKey = keyof Texts;
