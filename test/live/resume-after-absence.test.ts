/** Clients that resume from an old position: users are served in turn, and each may resume with a limited number of clients at once. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Listener, openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// Every position that is not in memory counts as old.
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
const post = async (from: number, count: number): Promise<void> => {
  const packets = Array.from({ length: count }, (_, at) => ({ n: from + at }));
  expect((await service.admin('POST', 'objects/car/packets', packets)).status).toBe(200);
};
const resume = async ({ token }: Person, since: string): Promise<Listener> => {
  const listener = await openListener(service.url, token, { since, events: 'object-packet' });
  endings.push(listener.close);
  return listener;
};
const receivedBy = (listener: Listener): number[] => listener.received().map(({ payload }) => payload.n);

test('sends clients of several users, which it serves in turn, every event once and in order', async () => {
  const since = await positionNow();
  await post(0, LIMITS.recentChanges + 100);
  await post(LIMITS.recentChanges + 100, 100);
  await service.settled();
  const all = Array.from({ length: LIMITS.recentChanges + 200 }, (_, at) => at);
  const listeners = await Promise.all([first, first, second].map((person) => resume(person, since)));
  await until(
    () => listeners.every((listener) => receivedBy(listener).length >= all.length),
    'every client to receive all events',
  );
  await post(all.length, 1);
  await until(
    () => listeners.every((listener) => receivedBy(listener).length > all.length),
    'every client to receive the last event',
  );
  for (const listener of listeners) expect(receivedBy(listener)).toEqual([...all, all.length]);
});

test('refuses further clients of a user with too many resuming ones, by socket and by HTTP, but not those of others', async () => {
  const { returningPerUser } = LIMITS;
  Object.assign(LIMITS, { returningPerUser: 0 });
  endings.push(() => void Object.assign(LIMITS, { returningPerUser }));
  // Positions in memory never count as old: this one is older.
  const since = (await first.call('GET', 'events')).body.position;
  await post(0, 1);
  await service.settled();
  const why = 'too many clients of this user resume from an old position at the same time';
  expectRefusal(await first.call('GET', `events?since=${since}`), 429, why);
  await expect(resume(first, since)).rejects.toThrow('Too Many Requests');
  // An EventSource that got an answer would not reconnect.
  const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${first.token}` };
  const events = `${service.url}/api/v1/events`;
  await expect(fetch(events, { headers: { ...headers, 'Last-Event-ID': since } })).rejects.toThrow('fetch failed');
  expect((await fetch(`${events}?since=${since}`, { headers })).status).toBe(429);
  expect((await first.call('GET', 'events')).status).toBe(200);
  Object.assign(LIMITS, { returningPerUser: 1 });
  expect((await first.call('GET', `events?since=${since}`)).body.events).toHaveLength(1);
  const back = await resume(second, since);
  await until(() => receivedBy(back).length === 1, 'the event');
});
