/** How many security events are stored: few of a flood, and all of other users. */
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { type Audit, type AuditEntry, createAudit } from '../../src/accounts/audit.js';
import { LIMITS } from '../../src/core/limits.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const events = () => service.client.db().collection('audit');
const HOUR_MS = 3_600_000;
let nowMs = Date.now();
let audit: Audit;

// The fixture logged in.
beforeAll(() => until(() => events().findOne({ action: 'login' }), 'what the service itself has to store'));

beforeEach(async () => {
  nowMs += 2 * HOUR_MS;
  await events().deleteMany({});
  const log = { info: () => undefined, error: (details: object) => expect(details).toBeUndefined() };
  audit = createAudit({ database: databaseOf(service.client), log, now: () => nowMs });
});

const REFUSED: AuditEntry = {
  action: 'login refused',
  userId: null,
  login: 'unknown',
  address: '192.0.2.7',
  requestId: 'request-1',
  method: 'POST',
  path: '/auth/token',
  entityId: null,
  fields: null,
};

/** Records these in one moment after the other, as many at a time, and gives what is stored. */
async function record(entries: readonly AuditEntry[], atATime = 1) {
  for (let at = 0; at < entries.length; at += atATime) {
    for (const entry of entries.slice(at, at + atATime)) audit.record(entry);
    await audit.stop();
  }
  return events().find().sort({ _id: 1 }).toArray();
}

const refusals = (count: number, more: (at: number) => Partial<AuditEntry> = () => ({})): AuditEntry[] =>
  Array.from({ length: count }, (_, at) => ({ ...REFUSED, requestId: `request-${at}`, ...more(at) }));

test('combines failed logins of unknown names within a moment into one event', async () => {
  const found = await record(
    refusals(500, (at) => ({ login: `guess-${at}` })),
    500,
  );
  expect(found.map(({ login, count }) => [login, count])).toEqual([[null, 500]]);
});

test('records failed logins of an existing user separately', async () => {
  const entries = refusals(20, (at) => ({ login: at % 2 === 0 ? ADMIN.login : `guess-${at}` }));
  const found = await record(entries, 20);
  expect(found.map(({ login, count }) => [login, count])).toEqual([
    [ADMIN.login, 10],
    [null, 10],
  ]);
});

test.each<[string, (at: number) => Partial<AuditEntry>]>([
  ['an address', (at) => ({ login: `guess-${at}` })],
  ['a /64 network of IPv6', (at) => ({ login: `guess-${at}`, address: `2001:db8::${at.toString(16)}` })],
  [
    'a user',
    (at) => ({ action: 'forbidden', userId: '000000000000000000000002', login: ADMIN.login, path: `/labels/${at}` }),
  ],
])('stores a limited number of refusals of %s per hour, and counts the others', async (_what, more) => {
  const most = LIMITS.auditRefusals;
  const found = await record(refusals(most + 50, more));
  expect(found).toHaveLength(most + 1);
  expect(found.slice(0, most).every(({ count }) => count === 1)).toBe(true);
  const { path, count, user } = found.at(-1) as (typeof found)[number];
  expect({ path, count, user: user && String(user) }).toEqual({ path: '*', count: 50, user: more(0).userId ?? null });
  // Of another kind, another event; of the next hour, single ones again.
  const failed = await record([{ ...REFUSED, ...more(7), action: 'login failed' }]);
  expect(failed).toHaveLength(most + 2);
  nowMs += HOUR_MS;
  expect(await record(refusals(1, more))).toHaveLength(most + 3);
});

test('stores refusals of other callers, and all successes, during a flood', async () => {
  await record(
    refusals(3_000, (at) => ({ login: ADMIN.login, path: `/auth/${at}` })),
    1_000,
  );
  const flooded = await events().countDocuments();
  expect(flooded).toBeLessThanOrEqual(LIMITS.auditRefusals + 1);
  const user = { userId: '000000000000000000000002', login: ADMIN.login };
  const others = [
    { ...REFUSED, address: '192.0.2.8' },
    ...refusals(150, (at) => ({
      ...user,
      action: 'rights changed',
      path: `/users/${at}`,
      entityId: String(new ObjectId()),
    })),
  ];
  expect(await record(others, 1_000)).toHaveLength(flooded + others.length);
});

test('keeps recording known callers while very many networks flood', async () => {
  const flood = refusals(5_000, (at) => ({ address: `10.${at >> 8}.${at & 255}.1`, login: ADMIN.login }));
  const user = { userId: '000000000000000000000002', login: ADMIN.login, action: 'rights changed' };
  const found = await record([...flood, { ...REFUSED, ...user }], flood.length + 1);
  expect(found.length).toBeLessThanOrEqual(LIMITS.auditPending);
  expect(found.filter(({ action }) => action === 'rights changed')).toHaveLength(1);
});

/** Changes of objects by one user, with their values. */
const changes = (count: number, userId: string): AuditEntry[] =>
  refusals(count, (at) => ({
    action: 'entity changed',
    userId,
    login: ADMIN.login,
    method: 'PATCH',
    path: `/objects/${at}`,
    entityId: new ObjectId().toHexString(),
    fields: ['name'],
    before: { name: `van ${at}` },
    after: { name: `truck ${at}` },
  }));

test('stores a limited number of changes of a user per hour, counts the others, and keeps the events of other users', async () => {
  const writer = '000000000000000000000002';
  const atOnce = LIMITS.auditChangesAtOnce;
  const ofMoment = await record(changes(atOnce + 5_000, writer), atOnce + 5_000);
  expect(ofMoment).toHaveLength(atOnce + 1);
  expect(ofMoment[0]).toMatchObject({ before: { name: 'van 0' }, after: { name: 'truck 0' }, count: 1 });
  const { before, after, path, entity, fields, count } = ofMoment.at(-1) as (typeof ofMoment)[number];
  const nothing = { before: undefined, after: undefined, entity: null, fields: null };
  expect({ before, after, path, entity, fields, count }).toEqual({ ...nothing, path: '*', count: 5_000 });
  const left = LIMITS.auditChanges - atOnce - 1;
  const ofHour = await record(changes(left + 500, writer), 200);
  expect(ofHour).toHaveLength(LIMITS.auditChanges + 1);
  expect(ofHour.find(({ count: many }) => many === 500)).toMatchObject({ path: '*', entity: null });
  const others = [{ ...REFUSED, userId: writer, login: ADMIN.login, action: 'forbidden' }];
  expect(await record([...changes(3_000, new ObjectId().toHexString()), ...others], 3_001)).toHaveLength(
    ofHour.length + atOnce + 1 + others.length,
  );
});

test('shortens long values of clients without splitting a character', async () => {
  const long = `${'x'.repeat(LIMITS.auditPathCharacters - 1)}🚗`;
  const [found] = await record([{ ...REFUSED, login: long, path: long, address: long }]);
  const whole = 'x'.repeat(LIMITS.auditPathCharacters - 1);
  expect([found?.path, found?.address, found?.login]).toEqual([whole, whole, null]);
});
