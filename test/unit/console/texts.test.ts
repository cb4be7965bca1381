/** Every page has the texts that it shows: those of all pages, and those that are loaded with it. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ENGLISH } from '../../../src/console/text/english.js';
import { ENGLISH_ALARMS } from '../../../src/console/text/english-alarms.js';
import { ENGLISH_BULK } from '../../../src/console/text/english-bulk.js';
import { ENGLISH_CHANNELS } from '../../../src/console/text/english-channels.js';
import { ENGLISH_COMPARE } from '../../../src/console/text/english-compare.js';
import { ENGLISH_DATA } from '../../../src/console/text/english-data.js';
import { ENGLISH_DIALOGS } from '../../../src/console/text/english-dialogs.js';
import { ENGLISH_HISTORY } from '../../../src/console/text/english-history.js';
import { ENGLISH_HOME } from '../../../src/console/text/english-home.js';
import { ENGLISH_IMPORT } from '../../../src/console/text/english-import.js';
import { ENGLISH_LINKS } from '../../../src/console/text/english-links.js';
import { ENGLISH_MEANINGS } from '../../../src/console/text/english-meanings.js';
import { ENGLISH_NOTES } from '../../../src/console/text/english-notes.js';
import { ENGLISH_PAGES } from '../../../src/console/text/english-pages.js';
import { ENGLISH_PALETTE } from '../../../src/console/text/english-palette.js';
import { ENGLISH_PARTS } from '../../../src/console/text/english-parts.js';
import { ENGLISH_PROPOSALS } from '../../../src/console/text/english-proposals.js';
import { ENGLISH_REPORTS } from '../../../src/console/text/english-reports.js';
import { ENGLISH_ROLES } from '../../../src/console/text/english-roles.js';
import { ENGLISH_RULES } from '../../../src/console/text/english-rules.js';
import { ENGLISH_SCHEDULES } from '../../../src/console/text/english-schedules.js';
import { ENGLISH_SETTINGS } from '../../../src/console/text/english-settings.js';
import { ENGLISH_SHEET } from '../../../src/console/text/english-sheet.js';
import { ENGLISH_VIEWS } from '../../../src/console/text/english-views.js';
import { ENGLISH_WHERE } from '../../../src/console/text/english-where.js';

const FOLDER = 'src/console';
const ROUTES = join(FOLDER, 'shell/routes.ts');
const MORE: Readonly<Record<string, object>> = {
  alarms: ENGLISH_ALARMS,
  bulk: ENGLISH_BULK,
  channels: ENGLISH_CHANNELS,
  compare: ENGLISH_COMPARE,
  data: ENGLISH_DATA,
  dialogs: ENGLISH_DIALOGS,
  home: ENGLISH_HOME,
  history: ENGLISH_HISTORY,
  import: ENGLISH_IMPORT,
  sheet: ENGLISH_SHEET,
  parts: ENGLISH_PARTS,
  links: ENGLISH_LINKS,
  meanings: ENGLISH_MEANINGS,
  notes: ENGLISH_NOTES,
  pages: ENGLISH_PAGES,
  palette: ENGLISH_PALETTE,
  proposals: ENGLISH_PROPOSALS,
  reports: ENGLISH_REPORTS,
  roles: ENGLISH_ROLES,
  rules: ENGLISH_RULES,
  schedules: ENGLISH_SCHEDULES,
  settings: ENGLISH_SETTINGS,
  views: ENGLISH_VIEWS,
  where: ENGLISH_WHERE,
};
const ALL = new Set([ENGLISH, ...Object.values(MORE)].flatMap(Object.keys));

const sourceOf = (file: string): string => {
  const path = file.replace(/\.js$/, '.ts');
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return readFileSync(`${path}x`, 'utf8');
  }
};

/** The sources that a file loads, now or later, but not its routes, which have texts of their own. */
function sourcesOf(file: string, found = new Map<string, string>()): Map<string, string> {
  if (found.has(file) || file.startsWith(join(FOLDER, 'text/')) || !file.startsWith(FOLDER)) return found;
  const source = sourceOf(file);
  found.set(file, source);
  for (const [, path = ''] of source.matchAll(/^(?!import type).*(?:from |import\()'(\.[^']+)'/gm))
    if (join(dirname(file), path) !== ROUTES.replace('.ts', '.js')) sourcesOf(join(dirname(file), path), found);
  return found;
}

/** The keys of texts in a source; of `command.${status}`, all that begin so. */
function keysOf(source: string): string[] {
  const whole = [...source.matchAll(/'([\w.]+)'/g)].map(([, key = '']) => key);
  const begun = [...source.matchAll(/`(\w+\.)\$\{/g)].map(([, begin = '']) => begin);
  return [...ALL].filter(
    (key) =>
      whole.includes(key) ||
      whole.some((one) => key === `${one}.one` || key === `${one}.other`) ||
      begun.some((one) => key.startsWith(one)),
  );
}

function missing(file: string, texts: object): string[] {
  const sources = [...sourcesOf(file)];
  // Those that are loaded with a part of the page.
  const loaded = sources.flatMap(([, source]) =>
    [...source.matchAll(/loadTexts\((?:'(\w+)'|(\w+)_TEXTS)\)/g)].map(
      ([, name = '', constant = '']) => MORE[name || constant.toLowerCase()] ?? {},
    ),
  );
  const known = new Set([ENGLISH, texts, ...loaded].flatMap(Object.keys));
  return sources.flatMap(([name, source]) =>
    keysOf(source)
      .filter((key) => !known.has(key))
      .map((key) => `${key} in ${name}`),
  );
}

/** It has the form of entities for geofences alone. */
const GEOFENCES = '/geofences/geofences.js';

/** Each page of the routes, with the texts that are named beside it. */
const pages = sourceOf(ROUTES)
  .split(/page(?:With)?\(/)
  .flatMap((source) => {
    const path = /import\('\.([^']+)'/.exec(source)?.[1];
    const texts = [...source.matchAll(/'(\w+)'/g)].map(([, name = '']) => MORE[name] ?? {});
    return path === undefined ? [] : [[path.slice(1), texts] as const];
  });

test('finds all pages, and keys in them', () => {
  expect(pages).toHaveLength([...sourceOf(ROUTES).matchAll(/import\('/g)].length);
  expect(keysOf(sourceOf(join(FOLDER, 'welcome/welcome.tsx')))).toContain('welcome.create');
});

test.each(pages)('has every text of %s', (path, texts) => {
  const dialogs = path === GEOFENCES ? ENGLISH_DIALOGS : {};
  expect(missing(join(FOLDER, path), Object.assign({}, dialogs, ...texts))).toEqual([]);
});

test('has every text of what all pages share', () => {
  expect(missing(join(FOLDER, 'shell/app.js'), {})).toEqual([]);
});

test('has every text of the page of a share link', () => {
  expect(missing(join(FOLDER, 'shared/shared-page.js'), {})).toEqual([]);
});
