/** Those who come back from long ago: each user's are brought up to the present without those of another, and only so many at once. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/model/limits.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Listener, openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// Whatever is read from the log is long ago.
const { historyNearMs, historyTurnMs, historyPage } = LIMITS;
const service = useService();
const endings: (() => void)[] = [];
let group: string;
let first: Person;
let second: Person;

beforeAll(async () => {
  Object.assign(LIMITS, { historyNearMs: -1, historyTurnMs: 0, historyPage: 20 });
  group = (await service.admin('POST', 'groups', { name: 'here' })).body._id;
  first = await createPerson(service, { group });
  second = await createPerson(service, { group });
  await service.admin('POST', 'objects', { id: 'car', name: 'Car', group });
});
afterAll(() => void Object.assign(LIMITS, { historyNearMs, historyTurnMs, historyPage }));
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

const positionNow = async (): Promise<string> => {
  await service.settled();
  return (await service.admin('GET', 'events')).body.position;
};
/** More than is kept in memory. */
const post = async (from: number, count: number): Promise<void> => {
  const packets = Array.from({ length: count }, (_, at) => ({ n: from + at }));
  expect((await service.admin('POST', 'objects/car/packets', packets)).status).toBe(200);
};
const comeBack = async ({ token }: Person, since: string): Promise<Listener> => {
  const listener = await openListener(service.url, token, { since, events: 'object-packet' });
  endings.push(listener.close);
  return listener;
};
const toldTo = (listener: Listener): number[] => listener.received().map(({ payload }) => payload.n);

test('tells each of several users everything once and in order, though they are served in turn', async () => {
  const since = await positionNow();
  await post(0, LIMITS.recentChanges + 100);
  await post(LIMITS.recentChanges + 100, 100);
  await service.settled();
  const all = Array.from({ length: LIMITS.recentChanges + 200 }, (_, at) => at);
  const listeners = await Promise.all([first, first, second].map((person) => comeBack(person, since)));
  await until(() => listeners.every((listener) => toldTo(listener).length >= all.length), 'all is told', 40_000);
  await post(all.length, 1);
  await until(() => listeners.every((listener) => toldTo(listener).length > all.length), 'the last one is told');
  for (const listener of listeners) expect(toldTo(listener)).toEqual([...all, all.length]);
});

test('refuses further clients of a user of whom many come back at once, by socket and by HTTP, and nobody else’s', async () => {
  const { returningPerUser } = LIMITS;
  Object.assign(LIMITS, { returningPerUser: 0 });
  endings.push(() => void Object.assign(LIMITS, { returningPerUser }));
  // Of memory itself nothing is long ago: the position is of before it.
  const since = (await first.call('GET', 'events')).body.position;
  await post(0, 1);
  await service.settled();
  const why = 'too many clients of this user resume from an old position at the same time';
  expectRefusal(await first.call('GET', `events?since=${since}`), 429, why);
  await expect(comeBack(first, since)).rejects.toThrow('Too Many Requests');
  // An EventSource would take an answer as final, and never come back.
  const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${first.token}` };
  const events = `${service.url}/api/v1/events`;
  await expect(fetch(events, { headers: { ...headers, 'Last-Event-ID': since } })).rejects.toThrow('fetch failed');
  expect((await fetch(`${events}?since=${since}`, { headers })).status).toBe(429);
  expect((await first.call('GET', 'events')).status).toBe(200);
  Object.assign(LIMITS, { returningPerUser: 1 });
  expect((await first.call('GET', `events?since=${since}`)).body.events).toHaveLength(1);
  const back = await comeBack(second, since);
  await until(() => toldTo(back).length === 1);
});
