// Attacks of clients of live events, and of devices over MQTT.
import { io } from 'socket.io-client';
import type { Attack, Attacker, Note } from './asking.js';
import { headOf, keepAsking, keepOpen } from './asking.js';
import { keepPublishing } from './devices.js';

const SUBSCRIPTIONS_PER_SECOND = 90;
const EVENTS = { Accept: 'text/event-stream' };

function openSocket({ url, token }: Attacker, query: Record<string, string> = {}) {
  return io(url, {
    transports: ['websocket'],
    extraHeaders: { authorization: `Bearer ${token}` },
    query,
    forceNew: true,
    reconnectionDelay: 10,
    reconnectionDelayMax: 10,
    randomizationFactor: 0,
  });
}

function keepSubscribing(attacker: Attacker, note: Note): void {
  const socket = openSocket(attacker);
  const objects = Array.from({ length: 1_000 }, (_, at) => at.toString(16).padStart(12, 'f'));
  setInterval(() => {
    if (!socket.connected) return;
    socket.emit('subscribe', { objects }, ({ success, code }: { success: boolean; code?: string }) =>
      note(success ? 'subscribed' : (code ?? 'refused')),
    );
  }, 1_000 / SUBSCRIPTIONS_PER_SECOND);
}

export const LIVE_ATTACKS: readonly Attack[] = [
  {
    name: 'subscriptions to 1,000 objects ninety times a second, of four sockets',
    answers: ['subscribed', '429'],
    run(attacker, note) {
      for (let socket = 0; socket < 4; socket++) keepSubscribing(attacker, note);
    },
  },
  {
    name: '40 sockets that reconnect again and again from an old position',
    answers: ['connected'],
    run(attacker, note) {
      for (let nth = 0; nth < 40; nth++) {
        const socket = openSocket(attacker, { since: attacker.since });
        socket.once('connect', () => note('connected'));
        setInterval(() => socket.connected && socket.disconnect().connect(), 500);
      }
    },
  },
  {
    name: '40 streams and pages of events from an old position',
    answers: [200],
    run(attacker, note) {
      const path = `events?since=${attacker.since}`;
      keepAsking(20, attacker, note, () => ({ path: `${path}&wait=1` }));
      const head = headOf(`GET /api/v1/${path}`, { ...EVENTS, Authorization: `Bearer ${attacker.token}` });
      for (let nth = 0; nth < 20; nth++) void keepOpen(attacker.url, (socket) => socket.pause().write(head), 100);
    },
  },
  {
    name: '40 streams of events that are opened and closed',
    answers: [200],
    run: (attacker, note) => {
      const head = headOf('GET /api/v1/events', { ...EVENTS, Authorization: `Bearer ${attacker.token}` });
      for (let nth = 0; nth < 40; nth++) {
        void keepOpen(
          attacker.url,
          (socket) => {
            socket.write(head);
            socket.once('data', (data) => {
              note(Number(data.toString('latin1', 9, 12)));
              socket.destroy();
            });
          },
          50,
        );
      }
    },
  },
  {
    name: 'MQTT messages that cannot be stored',
    answers: ['acknowledged'],
    run: (attacker, note) =>
      keepPublishing(attacker, note, [
        ['base/state', '{"a":{"_bsontype":1}}'],
        ['base/state', '{"on":{"toString":1}}'],
        ['base/state/on', '{"toString":1}'],
        ['base/state', '['.repeat(60_000)],
        ['base/state', Buffer.from([0xff, 0xfe])],
        ['base/commands/x/result', '{"status":{"toString":1}}'],
      ]),
  },
];
