/** The pages of the console by their addresses. Each is a file of its own, loaded when it is opened. */
import type { ComponentType } from 'preact';
import lazy from 'preact-iso/lazy';
import { exec } from 'preact-iso/router';
import { TAB_PARTS, toTab } from '../objects/object-tabs.js';
import { requestWithoutLogin } from '../state/api.js';
import { loadObject } from '../state/fleet.js';
import { loadPage } from '../state/parts.js';
import { mayHaveSession } from '../state/session.js';
import { loadTexts, type MoreTexts } from '../text/language.js';

type Page = ComponentType & { preload(): Promise<unknown> };

const page = (load: () => Promise<unknown>): Page => lazy(() => loadPage(load)) as Page;

/** With its texts, which other pages do without. */
const pageWith = (texts: MoreTexts, load: () => Promise<unknown>, ...more: readonly MoreTexts[]): Page =>
  page(async () => (await Promise.all([load(), loadTexts(texts), ...more.map(loadTexts)]))[0]);

const Account = pageWith('pages', () => import('../account/account.js').then(({ Account }) => Account));
const Access = pageWith('data', () => import('../entities/access.js').then(({ Access }) => Access));
const Alarms = pageWith('alarms', () => import('../alarms/alarms.js').then(({ Alarms }) => Alarms));
const Compare = pageWith(
  'compare',
  () => import('../compare/compare.js').then(({ Compare }) => Compare),
  'history',
  'pages',
);
const Data = pageWith('data', () => import('../entities/data.js').then(({ Data }) => Data));
const ObjectPage = pageWith('pages', () => import('../objects/object-page.js').then(({ ObjectPage }) => ObjectPage));
const OBJECT_TAB = '/objects/:id/:tab?';

export const ROUTES: readonly (readonly [path: string, page: Page])[] = [
  ['/', pageWith('home', () => import('../home/home.js').then(({ Home }) => Home))],
  ['/welcome', pageWith('pages', () => import('../welcome/welcome.js').then(({ Welcome }) => Welcome))],
  [OBJECT_TAB, ObjectPage],
  ['/alarms/:id?', Alarms],
  ['/access/:section?', Access],
  ['/compare', Compare],
  ['/data/:store?', Data],
  ['/geofences', pageWith('data', () => import('../geofences/geofences.js').then(({ Geofences }) => Geofences))],
  ['/nearest', pageWith('where', () => import('../where/nearest-page.js').then(({ Nearest }) => Nearest))],
  ['/log', pageWith('pages', () => import('../log/log.js').then(({ Log }) => Log))],
  ['/models', pageWith('data', () => import('../models/models.js').then(({ Models }) => Models))],
  ['/models/:id', pageWith('data', () => import('../models/model-page.js').then(({ ModelPage }) => ModelPage))],
  ['/reports', pageWith('reports', () => import('../reports/reports.js').then(({ Reports }) => Reports))],
  ['/rules', pageWith('data', () => import('../rules/rules.js').then(({ Rules }) => Rules))],
  ['/rules/:id', pageWith('data', () => import('../rules/rule-page.js').then(({ RulePage }) => RulePage), 'rules')],
  ['/account/:section?', Account],
];

/** Loads the page of an address before it is shown, and the object that it is about. */
export async function preloadPage(path: string): Promise<void> {
  const [route, page] = ROUTES.find(([route]) => exec(path, route) !== undefined) ?? [];
  const [, , id, tab] = path.split('/');
  const isObject = route === OBJECT_TAB && id !== undefined;
  const object = isObject && mayHaveSession() ? loadObject(decodeURIComponent(id), requestWithoutLogin) : undefined;
  await Promise.all([page?.preload(), isObject && TAB_PARTS[toTab(tab)].preload(), object]);
}
