/** The recipes of docs/how-to/alarm-recipes.md, as the page has them, with the packets of an object: each calls when it says, and not otherwise. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import type { JsonObject } from '../../src/core/json.js';
import { findZone } from '../../src/core/zone.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { readBlocks } from '../support/docs/markdown.js';
import { useService } from '../support/fixture.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const PAGE = 'docs/how-to/alarm-recipes.md';
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

let aheadMs = 0;
const now = (): number => Date.now() + aheadMs;
const service = useService({ now, env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const receiver = useReceiver();

/** By the minute at which the device sends it. */
type Sent = readonly [minute: number, fields: JsonObject];
type Span = readonly [raised: number, cleared: number];

interface Recipe {
  readonly object?: JsonObject;
  readonly sent: readonly Sent[];
  /** After these minutes without a packet, what follows is sent. */
  readonly afterSilence?: { readonly minutes: number; readonly sent: readonly Sent[] };
  /** When it is raised and cleared, in minutes. */
  readonly spans: readonly Span[];
  /** What is told; nothing where the packets came too late for it. */
  readonly text: string | null;
  /** The minute 0: where it is absent, so that the last packet is of now. */
  readonly startMs?: () => number;
  readonly commands?: number;
}

const at = (lat: number): JsonObject => ({ lat, lon: 10 });

/** That of the latest day and a half in which no clock was changed: the times of a recipe are minutes since its beginning. */
function midnightInBerlin(): number {
  const zone = findZone('Europe/Berlin') as NonNullable<ReturnType<typeof findZone>>;
  for (let localMs = Math.floor(now() / DAY_MS) * DAY_MS - 2 * DAY_MS; ; localMs -= DAY_MS) {
    const startMs = zone.toInstant(localMs);
    if (zone.findChange(startMs, startMs + 1.5 * DAY_MS) === null) return startMs;
  }
}

const RECIPES: Readonly<Record<string, Recipe>> = {
  'Cold chain': {
    sent: [
      [0, { temperature: 9 }],
      [9, { temperature: 9 }],
      [9.5, { temperature: 5 }],
      [20, { temperature: 8.5 }],
      [31, { temperature: 9.5 }],
      [33, { temperature: 7 }],
      [34, { temperature: 5 }],
      [35, { temperature: 6.5 }],
      [36, { temperature: 5 }],
      [39, { temperature: 4 }],
    ],
    spans: [[30, 38]],
    text: ' is at 8.5 °C',
  },
  Speeding: {
    object: { config: { maxSpeed: 80 } },
    sent: [
      [0, { speed: 80 }],
      [1, { speed: 95 }],
      [1.1, { speed: 79 }],
      [2, { speed: 88 }],
      [2.1, { other: 1 }],
      [2.2, { speed: 90 }],
      [3, { speed: 80 }],
    ],
    spans: [[2 + 1 / 6, 3]],
    text: ' drives 88 km/h',
  },
  Towing: {
    sent: [
      [0, { ignition: true, speed: 50 }],
      [1, { speed: 0, ignition: false }],
      [2, { speed: 7 }],
      [2.1, { speed: 0 }],
      [3, { speed: 20 }],
      [4, { speed: 25 }],
      [5, { speed: 0 }],
    ],
    spans: [[3.5, 5]],
    text: '',
  },
  'Fuel theft': {
    sent: [
      [0, { fuel: 80, speed: 60, ignition: true }],
      [10, { fuel: 60, speed: 60 }],
      [11, { fuel: 60, speed: 0, ignition: false }],
      [12, { fuel: 51, speed: 0 }],
      [13, { fuel: 95, speed: 0 }],
      [14, { fuel: 80, speed: 0 }],
      [15, { fuel: 80, speed: 0 }],
      [16, { fuel: 80, speed: 0, ignition: true }],
    ],
    spans: [[14, 16]],
    text: '',
  },
  'Visit of a geofence': {
    sent: [
      [0, at(49.9)],
      [1, at(50)],
      [2, at(50.1)],
      [10, at(50)],
      [13, at(50.0001)],
      [20, at(50.1)],
      [21, at(50)],
      [30, at(50.1)],
      [33, at(50.2)],
    ],
    spans: [[12, 32]],
    text: ' has arrived',
  },
  'Overheating with hysteresis': {
    sent: [
      [0, { engine: { temp: 110 } }],
      [0.4, { engine: { temp: 104 } }],
      [1, { engine: { temp: 106 } }],
      [2, { engine: { temp: 100 } }],
      [3, { engine: { temp: 107 } }],
      [4, { engine: { temp: 90 } }],
      [6, { engine: { temp: 90 } }],
    ],
    spans: [[1.5, 5]],
    text: '',
  },
  'Silent device': {
    // The last packet is later than the creation of the object, from which silence counts too.
    startMs: () => now() - 57 * MINUTE_MS,
    sent: [
      [0, { t: 1 }],
      [29, { t: 1 }],
      [58, { t: 1 }],
    ],
    afterSilence: { minutes: 32, sent: [[89, { t: 1 }]] },
    spans: [[88, 89]],
    text: ' sends nothing',
  },
  Battery: {
    sent: [
      [0, { battery: 21, charging: false }],
      [1, { battery: 15, charging: true }],
      [2, { battery: 25, charging: false }],
      [3, { battery: 19 }],
      [4, { battery: 22 }],
      [5, { charging: true }],
    ],
    spans: [[3, 5]],
    text: ' has 19 %',
  },
  'Door open at night': {
    startMs: midnightInBerlin,
    sent: [
      [12 * 60, { door: 'open' }],
      [13 * 60, { door: 'closed' }],
      [19 * 60, { door: 'open' }],
      [21 * 60, { door: 'open' }],
      [30 * 60 + 30, { door: 'open' }],
      [31 * 60, { door: 'closed' }],
      [32 * 60, { door: 'open' }],
      [33 * 60, { door: 'closed' }],
    ],
    spans: [[20 * 60 + 2, 31 * 60]],
    text: null,
  },
  'Command on alarm': {
    sent: [
      [0, { level: 96 }],
      [1, { level: 70 }],
      [8, { level: 94 }],
      [9, { level: 95 }],
      [9.2, { level: 90 }],
      [9.4, { level: 96 }],
      [10, { level: 79 }],
    ],
    spans: [
      [0, 1],
      [9, 10],
    ],
    text: '',
    commands: 1,
  },
};

const sections = readFileSync(PAGE, 'utf8').split(/^## /m).slice(1);
const rules = new Map(
  sections.map((section) => {
    const blocks = readBlocks(section).filter(({ kind }) => kind === 'json');
    return [section.split('\n')[0] as string, blocks.map(({ body }) => body)];
  }),
);

interface Alarm {
  readonly _id: string;
  readonly status: string;
  readonly raised: number;
  readonly cleared: number | null;
  readonly [name: string]: unknown;
}

const alarmsOf = async (objectId: string): Promise<Alarm[]> =>
  (await service.admin('GET', `alarms?where.object=${objectId}&sortBy=raised`)).body;

let count = 0;
async function createObject(fields: object): Promise<string> {
  const id = `recipe-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: id, ...fields }))._id;
}

async function sendAll(objectId: string, startMs: number, sent: readonly Sent[]): Promise<void> {
  for (const [minute, fields] of sent) {
    const packet = { ...fields, time: Math.round(startMs + minute * MINUTE_MS) };
    expect((await service.admin('POST', `objects/${objectId}/packets`, packet)).status).toBe(200);
  }
}

/** The rule of a recipe, with the `_id`s that its reader writes. */
async function readRule(title: string, person: Person): Promise<JsonObject> {
  const [body = '', ...others] = rules.get(title) ?? [];
  expect(others).toEqual([]);
  const geometry = { type: 'Point', coordinates: [10, 50] };
  const fence = body.includes('geofence')
    ? entityOf(await service.admin('POST', 'geofences', { name: 'Customer', geometry, radius: 100 }))._id
    : '';
  const text = body.replaceAll('<_id of a user>', person.id).replaceAll('<_id of a geofence>', fence);
  expect(text).not.toContain('<_id');
  return JSON.parse(text);
}

async function createListener(): Promise<Person> {
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  await person.call('PATCH', 'account', { channels: [{ ntfy: `${receiver.url}${person.id}` }] });
  return person;
}

async function clearedAlarms(objectId: string, wanted: number): Promise<Alarm[]> {
  let alarms: Alarm[] = [];
  await until(async () => {
    alarms = await alarmsOf(objectId);
    return alarms.length >= wanted && alarms.every(({ status }) => status === 'cleared');
  }, `${wanted} cleared alarms`);
  return alarms;
}

const toSpans = (alarms: readonly Pick<Alarm, 'raised' | 'cleared'>[], startMs: number): number[][] =>
  alarms.map(({ raised, cleared }) => [raised - startMs, (cleared ?? 0) - startMs]);

/** An object that the rule does not select, once its packets have been evaluated: another rule says that they were. */
async function alarmsOfOther(startMs: number, recipe: Recipe): Promise<Alarm[]> {
  const other = await createObject({ ...recipe.object, labels: ['other'] });
  const last = { name: 'last', when: { param: 'isLast', op: '==', value: true }, select: { objects: [other] } };
  await service.admin('POST', 'rules', last);
  await sendAll(other, startMs, recipe.sent);
  await sendAll(other, startMs, [[recipe.sent.at(-1)?.[0] ?? 0, { isLast: true }]]);
  await until(async () => (await alarmsOf(other)).length > 0, 'the alarm of the last packet');
  return alarmsOf(other);
}

test('has a test for each recipe of the page', () => {
  expect(Object.keys(RECIPES)).toEqual([...rules.keys()]);
  expect(rules.size).toBe(10);
});

describe('the recipe', () => {
  test.each(Object.keys(RECIPES))('calls when the page says so, and not otherwise: %s', async (title) => {
    const recipe = RECIPES[title] as Recipe;
    const person = await createListener();
    const rule = await readRule(title, person);
    const ruleId = entityOf(await service.admin('POST', 'rules', rule))._id;
    const objectId = await createObject({ ...recipe.object, labels: (rule.select as JsonObject).labels });
    const startMs = Math.round(recipe.startMs?.() ?? now() - (recipe.sent.at(-1)?.[0] ?? 0) * MINUTE_MS);
    expect((await alarmsOfOther(startMs, recipe)).map(({ name }) => name)).toEqual(['last']);
    await sendAll(objectId, startMs, recipe.sent);
    const { afterSilence } = recipe;
    if (afterSilence !== undefined) {
      aheadMs += afterSilence.minutes * MINUTE_MS;
      await until(async () => (await alarmsOf(objectId)).length > 0, 'the alarm of silence');
      await sendAll(objectId, startMs, afterSilence.sent);
    }
    const alarms = await clearedAlarms(objectId, recipe.spans.length);
    const spans = recipe.spans.map((span) => span.map((minute) => Math.round(minute * MINUTE_MS)));
    expect(toSpans(alarms, startMs)).toEqual(spans);
    expect(alarms.at(-1)).toMatchObject({ rule: ruleId, name: rule.name, severity: rule.severity ?? 'warning' });

    const period = { object: objectId, from: startMs, to: now() };
    const { body: tested } = await service.admin('POST', `rules/${ruleId}/test`, period);
    expect(toSpans(tested.alarms, startMs)).toEqual(spans);

    // Lists of commands have what a majority has, those of alarms what the primary has.
    await service.settled();
    const { body: commands } = await service.admin('GET', `objects/${objectId}/commands`);
    expect(commands).toHaveLength(recipe.commands ?? 0);
    const told = () => receiver.received.filter(({ path }) => path === `/${person.id}`);
    if (recipe.text === null) return expect(told()).toEqual([]);
    await until(() => told().length > 0, 'a message');
    expect(told()[0]?.text).toContain(recipe.text);
  });
});
