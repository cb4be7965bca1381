/** Live events of the client: none lost and none doubled, whatever happens to its connections. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import {
  createClient,
  type EventState,
  type EventTransport,
  type LiveEvent,
  type VigilClient,
  type VigilError,
} from '../../src/client/client.js';
import { ADMIN, useService } from '../support/fixture.js';
import { reconnectOften } from '../support/reconnecting.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const RECONNECTS = runsOf(500);
const CONNECTIONS: readonly EventTransport[] = ['server-sent-events', 'websocket'];
const TRANSPORTS: readonly EventTransport[] = [...CONNECTIONS, 'polling'];

const service = useService();
let vigil: VigilClient;
const stop = new Set<() => void>();

beforeAll(() => {
  vigil = createClient({ url: service.url, login: ADMIN, retryMs: 1, WebSocket });
});

afterEach(() => {
  for (const close of stop) close();
  stop.clear();
});

/** Listens in the background. */
function listen(client: VigilClient, options: Parameters<VigilClient['events']>[0] = {}) {
  const received: LiveEvent[] = [];
  const states: EventState[] = [];
  const errors: VigilError[] = [];
  const stream = client.events({
    ...options,
    onState(state, error) {
      states.push(state);
      if (error) errors.push(error);
    },
  });
  stop.add(stream.close);
  const ended = (async () => {
    for await (const event of stream) received.push(event);
  })();
  ended.catch(() => undefined);
  const isLive = () => until(() => stream.state === 'live', 'the stream is live');
  return { received, states, errors, stream, ended, isLive };
}

const numbersOf = (events: readonly LiveEvent[]): unknown[] =>
  events.map((event) => (event.event === 'object-packet' ? event.data.n : event.event));

test('receives events as they happen, of the objects and with the names that were asked for', async () => {
  const { _id } = await vigil.objects.create({ id: 'one', name: 'One' });
  await vigil.objects.create({ id: 'two', name: 'Two' });
  // Later subscribers do not receive it.
  await service.settled();
  const all = listen(vigil);
  const packets = listen(vigil, { objects: ['one'], events: ['object-packet'] });
  await Promise.all([all.isLive(), packets.isLive()]);
  for (const id of ['one', 'two']) {
    await vigil.objects.addPackets(id, [{ n: id }]);
    await vigil.objects.update(id, { status: 'moved' });
  }
  await until(() => all.received.length === 4, 'all events');
  expect(numbersOf(all.received)).toEqual(['one', 'object-update', 'two', 'object-update']);
  expect(packets.received).toEqual([
    { event: 'object-packet', position: expect.any(String), data: expect.objectContaining({ _oid: _id, n: 'one' }) },
  ]);
  expect(packets.stream.position).toBe(packets.received[0]?.position);
});

test.each(TRANSPORTS)('begins with the events after a position, and then becomes live: %s', async (transport) => {
  const id = `past-${transport}`;
  await vigil.objects.create({ id, name: 'Past' });
  await service.settled();
  const first = listen(vigil, { objects: [id], transport });
  await first.isLive();
  const since = first.stream.position;
  first.stream.close();
  await first.ended;
  await vigil.objects.addPackets(id, [{ n: 1 }, { n: 2 }]);
  // For a client that connects now they are past.
  await service.settled();
  const later = listen(vigil, { objects: [id], since, transport });
  await later.isLive();
  expect(numbersOf(later.received)).toEqual([1, 2]);
  expect([first.states, later.states]).toEqual([
    ['connecting', 'live', 'closed'],
    ['connecting', 'live'],
  ]);
});

test.each(CONNECTIONS)(`loses and repeats nothing in ${RECONNECTS} reconnections: %s`, async (transport) => {
  const { sent, received } = await reconnectOften(service, transport, RECONNECTS);
  expect(received).toEqual(sent);
});

test.each(TRANSPORTS)('reports a lost position as a gap, and continues: %s', async (transport) => {
  const id = `lost-${transport}`;
  await vigil.objects.create({ id, name: 'Lost' });
  await service.settled();
  const { received, isLive } = listen(vigil, { objects: [id], since: 'no position!', transport });
  await isLive();
  await vigil.objects.addPackets(id, [{ n: 1 }]);
  await until(() => received.length === 2, 'the gap and the packet');
  expect(received[0]).toEqual({
    event: 'gap',
    position: null,
    data: { reason: 'unknown position', from: 'no position!' },
  });
  expect(numbersOf(received)).toEqual(['gap', 1]);
});

test.each(CONNECTIONS)('continues with a renewed token when the old one is revoked: %s', async (transport) => {
  const id = `renewed-${transport}`;
  await vigil.objects.create({ id, name: 'Renewed' });
  await service.settled();
  const client = createClient({ url: service.url, login: ADMIN, retryMs: 1, WebSocket });
  const { received, states, isLive } = listen(client, { objects: [id], transport });
  await isLive();
  await client.auth.logOut();
  await until(() => states.includes('waiting'), 'the connection is closed');
  await vigil.objects.addPackets(id, [{ n: 1 }]);
  await until(() => received.length === 1, 'the packet');
});

test.each(TRANSPORTS)('ends with an error when a token is revoked that cannot be renewed: %s', async (transport) => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const client = createClient({ url: service.url, token, retryMs: 1, WebSocket });
  const { ended, isLive, stream } = listen(client, { transport });
  await isLive();
  await client.auth.logOut();
  await expect(ended).rejects.toMatchObject({ status: 401 });
  expect(stream.state).toBe('closed');
});

test('ends without an error when the loop ends or its signal aborts', async () => {
  const abort = new AbortController();
  const { ended, isLive, states } = listen(vigil, { signal: abort.signal });
  await isLive();
  abort.abort();
  await ended;
  expect(states.at(-1)).toBe('closed');
  await vigil.objects.create({ id: 'left', name: 'Left' });
  const stream = vigil.events({ objects: ['left'], onState: (state) => state === 'live' && void addPacket() });
  const addPacket = () => vigil.objects.addPackets('left', [{ n: 1 }]);
  for await (const _ of stream) break;
  expect(stream.state).toBe('closed');
});

test('tries again with growing pauses while no server answers, and reports the reason', async () => {
  const away = createClient({ url: 'http://127.0.0.1:1', token: 't', retryMs: 1 });
  const { states, errors, stream, ended } = listen(away);
  await until(() => states.filter((state) => state === 'waiting').length >= 3, 'three attempts');
  expect(errors[0]).toMatchObject({ status: 0, message: expect.stringContaining('No answer') });
  stream.close();
  await ended;
});
