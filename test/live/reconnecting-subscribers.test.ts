/**
 * Clients of three transports move between two instances at random, while objects are written, shared and unshared. A model of
 * the rules predicts the events of each client: all changes since it left, once and in order, by the rights at the moment of
 * delivery.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import {
  type Call,
  type Listener,
  openListener,
  startTestService,
  type TestService,
  testUri,
} from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

// A heartbeat gives a stream a later position than that of its last event, which the model does not know.
Object.assign(LIMITS, { pingIntervalMs: 600_000 });

const PASSWORD = 'a long password';
const TRANSPORTS = ['socket', 'stream', 'pages'] as const;
const THINGS = 3;

let instances: [TestService, TestService];

beforeAll(async () => {
  const uri = testUri();
  instances = [await startTestService({}, uri), await startTestService({}, uri)];
});

afterAll(async () => {
  await instances[1].service.stop();
  await instances[1].client.close();
  await instances[0].stop();
});

/** What was received, as text, and where that ended. */
interface Connection {
  readonly received: string[];
  /** Resolves when all events that were sent before have arrived. */
  settle(): Promise<void>;
  /** Ends the connection; returns the position to resume from. */
  close(): Promise<string>;
}

const toText = (name: string, payload: { n?: number; id?: string; after?: object }): string =>
  name === 'object-packet'
    ? `packet ${payload.n}`
    : `${name} ${name === 'object-update' ? JSON.stringify(payload.after) : payload.id}`;

async function openSocket({ url }: TestService, token: string, since: string): Promise<Connection> {
  const listener: Listener = await openListener(url, token, { since }, 'everything');
  const received: string[] = [];
  let position = since;
  const settle = async (): Promise<void> => {
    const answer = await listener.socket.timeout(60_000).emitWithAck('subscribe', {});
    for (const { name, payload } of listener.take()) received.push(toText(name, payload));
    position = answer.position;
  };
  return {
    received,
    settle,
    async close() {
      await settle();
      listener.close();
      return position;
    },
  };
}

async function openStream({ url }: TestService, token: string, since: string): Promise<Connection> {
  const stop = new AbortController();
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', 'Last-Event-ID': since };
  const response = await fetch(`${url}/api/v1/events`, { headers, signal: stop.signal });
  const received: string[] = [];
  let text = '';
  let position = since;
  let isLive = false;
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        position = field('id') ?? position;
        isLive ||= block.startsWith(': live');
        const name = field('event');
        if (name !== undefined) received.push(toText(name, JSON.parse(field('data') ?? '{}')));
      }
    }
  })().catch(() => undefined);
  return {
    received,
    settle: () => until(() => isLive),
    async close() {
      stop.abort();
      await reading;
      return position;
    },
  };
}

async function openPages({ as }: TestService, token: string, since: string): Promise<Connection> {
  const received: string[] = [];
  let position = since;
  const settle = async (): Promise<void> => {
    const { body } = await as(token)('GET', `events?since=${position}`);
    for (const { event, data } of body.events) received.push(toText(event, data));
    if (body.gap !== undefined) received.push('gap');
    position = body.position;
  };
  return {
    received,
    settle,
    async close() {
      await settle();
      return position;
    },
  };
}

const OPENERS = { socket: openSocket, stream: openStream, pages: openPages };

type Step =
  | { kind: 'packet' | 'patch' | 'share' | 'unshare'; thing: number; at: number }
  | { kind: 'move'; who: number; at: number }
  | { kind: 'leave'; who: number };

const who = fc.nat({ max: TRANSPORTS.length - 1 });
const at = fc.nat({ max: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'packet' as const,
        'packet' as const,
        'patch' as const,
        'share' as const,
        'unshare' as const,
      ),
      thing: fc.nat({ max: THINGS - 1 }),
      at,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), who, at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), who }) },
);

/** The client of pages connects after an unshared packet, which it must not receive when the object is shared again. */
const SHARED_AGAIN: Step[] = [
  { kind: 'unshare', thing: 2, at: 0 },
  { kind: 'packet', thing: 0, at: 0 },
  { kind: 'packet', thing: 2, at: 0 },
  { kind: 'move', who: TRANSPORTS.indexOf('pages'), at: 1 },
  { kind: 'share', thing: 2, at: 0 },
];

/** All clients receive everything: twelve changes of each object. */
const ALL_SHARED: Step[] = Array.from({ length: 36 }, (_, n) => ({
  kind: n % 2 === 0 ? 'packet' : 'patch',
  thing: n % THINGS,
  at: n % 4 < 2 ? 0 : 1,
}));

let made = 0;

/** A guest of another group, and objects of the administrator's; all are shared at first. */
async function makeWorld() {
  const { admin } = instances[0];
  const must = async (...args: Parameters<Call>) => {
    const { status, body } = await admin(...args);
    expect(status).toBe(200);
    return body;
  };
  const login = `guest-${++made}`;
  const group = await must('POST', 'groups', { name: login });
  const guest = await must('POST', 'users', { login, password: PASSWORD, group: group._id });
  const things: { _id: string; shared: boolean }[] = [];
  for (let at = 0; at < THINGS; at++) {
    const { _id } = await must('POST', 'objects', { id: `${login}-${at}`, name: 'O' });
    await must('POST', `objects/${_id}/access`, { user: guest._id });
    things.push({ _id, shared: true });
  }
  return { guest: guest._id as string, things, token: await instances[0].tokenOf(login, PASSWORD) };
}

test('sends each reconnecting client exactly the predicted events', async () => {
  let events = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 25, maxLength: 40, size: 'max' }), async (steps) => {
      const { guest, things, token } = await makeWorld();
      const settleAll = () => Promise.all(instances.map((instance) => instance.settled()));
      await settleAll();
      const { body } = await instances[0].as(token)('GET', 'events');
      const happened: { thing: number; text: string }[] = [];
      const people = TRANSPORTS.map((transport) => ({
        transport,
        connection: null as Connection | null,
        position: body.position as string,
        /** The number of changes that were predicted for it, and that its position covers: a stream has the position of its last event. */
        seen: 0,
        known: 0,
        predicted: [] as string[],
        received: [] as string[],
      }));
      type Person = (typeof people)[number];
      const predict = (person: Person): void => {
        for (const [at, { thing, text }] of happened.entries()) {
          // A removal is sent whatever the user may see now.
          const isSent = things[thing]?.shared || text.startsWith('object-removed');
          if (at < person.seen || !isSent) continue;
          person.predicted.push(text);
          person.known = at + 1;
        }
        person.seen = happened.length;
      };
      const come = async (person: Person, instance: TestService): Promise<void> => {
        person.connection = await OPENERS[person.transport](instance, token, person.position);
        predict(person);
        person.known = happened.length;
        const { connection, received, predicted } = person;
        // Missed events are sent by the rights of now: the next step has to wait for them.
        await until(async () => {
          await connection.settle();
          return received.length + connection.received.length >= predicted.length;
        });
      };
      const go = async (person: Person): Promise<void> => {
        if (person.connection === null) return;
        const { connection, received, predicted } = person;
        await until(async () => {
          await connection.settle();
          return received.length + connection.received.length >= predicted.length;
        });
        person.position = await connection.close();
        received.push(...connection.received);
        person.connection = null;
        if (person.transport === 'stream') person.seen = person.known;
      };
      for (const [n, one] of steps.entries()) {
        if (one.kind === 'leave') await go(people[one.who] as Person);
        else if (one.kind === 'move') {
          await go(people[one.who] as Person);
          await come(people[one.who] as Person, instances[one.at] as TestService);
        } else {
          const thing = things[one.thing] as (typeof things)[number];
          const { admin } = instances[one.at] as TestService;
          const path = `objects/${thing._id}`;
          if (one.kind === 'packet') {
            await admin('POST', `${path}/packets`, { n });
            happened.push({ thing: one.thing, text: `packet ${n}` });
          } else if (one.kind === 'patch') {
            await admin('PATCH', path, { status: `${n}` });
            happened.push({ thing: one.thing, text: `object-update {"status":"${n}"}` });
          } else if (thing.shared !== (one.kind === 'share')) {
            const isShared = one.kind === 'share';
            if (isShared) await admin('POST', `${path}/access`, { user: guest });
            else await admin('DELETE', `${path}/access/${guest}`);
            thing.shared = isShared;
            happened.push({ thing: one.thing, text: `object-${isShared ? 'created' : 'removed'} ${thing._id}` });
          }
          await settleAll();
          for (const person of people) {
            if (person.connection === null) continue;
            predict(person);
            // A client of pages asks at once, because a page follows the rights of now.
            await person.connection.settle();
          }
        }
      }
      for (const person of people) {
        await go(person);
        await come(person, instances[0]);
        await go(person);
      }
      for (const { transport, predicted, received } of people) {
        expect([transport, received]).toEqual([transport, predicted]);
        events += predicted.length;
      }
    }),
    { numRuns: 2 + runsOf(10), endOnFailure: true, examples: [[SHARED_AGAIN], [ALL_SHARED]] },
  );
  expect(events).toBeGreaterThanOrEqual(TRANSPORTS.length * ALL_SHARED.length);
});
