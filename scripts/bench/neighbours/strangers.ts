// Attacks of clients without a login.
import { setTimeout as wait } from 'node:timers/promises';
import type { Attack, Note } from './asking.js';
import { ask, headOf, keepAsking, keepOpen } from './asking.js';
import { keepGuessing } from './devices.js';

const MIB = 1_024 * 1_024;
const JSON_TYPE = { 'Content-Type': 'application/json' };
const H2C = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQ' };

let made = 0;
const newLogin = (): string => `unknown-${made++}`;

/** Notes the status of the first answer that comes. */
const noteStatus =
  (note: Note) =>
  (data: Buffer): void =>
    note(Number(data.toString('latin1', 9, 12)));

/** Requests on one connection after another, each of which ends after the first answer. */
function keepSending(clients: number, url: string, note: Note, next: () => string): void {
  for (let client = 0; client < clients; client++) {
    void keepOpen(
      url,
      (socket) => {
        socket.write(next());
        socket.once('data', (data) => {
          noteStatus(note)(data);
          socket.destroy();
        });
      },
      10,
    );
  }
}

export const STRANGERS: readonly Attack[] = [
  {
    name: '100 connections that ask for h2c and stay open',
    answers: [200, 415],
    run({ url, token }, note) {
      const head = headOf('GET /api/v1/auth', { ...H2C, Authorization: `Bearer ${token}` });
      const post = headOf('POST /api/v1/auth/token', { ...H2C, 'Content-Length': '100' });
      for (let nth = 0; nth < 100; nth++) {
        void keepOpen(url, (socket) => socket.on('data', noteStatus(note)).write(nth % 2 === 0 ? head : post), 10);
      }
    },
  },
  {
    name: 'bodies of 16 MiB without a login',
    answers: [401],
    isHeavy: true,
    run(attacker, note) {
      const body = Buffer.alloc(16 * MIB, 0x20);
      keepAsking(20, attacker, note, () => ({ method: 'POST', path: 'objects', body, isStranger: true }));
    },
  },
  {
    name: 'wrong MQTT passwords for the neighbour’s device, and for `admin`',
    answers: ['Connection refused: Bad username or password'],
    run({ mqttUrl, neighbour }, note) {
      for (let nth = 0; nth < 20; nth++) void keepGuessing(mqttUrl, nth % 2 === 0 ? neighbour : 'admin', note);
    },
  },
  {
    name: 'logins that fail, of known and unknown names, with values of every type',
    answers: [400, 401, 429],
    run: (attacker, note) =>
      keepAsking(20, attacker, note, (nth) => ({
        method: 'POST',
        path: 'auth/token',
        isStranger: true,
        body: [
          { login: newLogin(), password: 'x' },
          { login: 'honest', password: 'x', expiresIn: { toString: 1 } },
          { login: { toString: 1 }, password: { toString: 1 } },
          { login: 'honest', password: 'x'.repeat(3_000) },
        ][nth % 4] as object,
      })),
  },
  {
    name: 'request lines in absolute form, and long paths',
    answers: [400, 401],
    run({ url }, note) {
      keepSending(10, url, note, () =>
        headOf(`POST ${url}/api/v1/auth/token`, { ...JSON_TYPE, 'Content-Length': '0' }),
      );
      keepSending(10, url, note, () => headOf(`GET ${url}/api/v1/${'x'.repeat(8_000)}`));
    },
  },
  {
    name: '300 sockets without a token, over WebSockets and polling',
    answers: [101, 200, 403],
    run(attacker, note) {
      const upgrade = {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      };
      const head = headOf('GET /socket.io/?EIO=4&transport=websocket', upgrade);
      for (let nth = 0; nth < 150; nth++) {
        void keepOpen(attacker.url, (socket) => socket.once('data', noteStatus(note)).write(head), 4_000);
      }
      const poll = async (): Promise<never> => {
        for (;;) {
          await ask(attacker, { path: '/socket.io/?EIO=4&transport=polling', isStranger: true }, note);
          await wait(4_000);
        }
      };
      for (let nth = 0; nth < 150; nth++) void poll();
    },
  },
  {
    name: '500 connections that send a byte of a request a second',
    answers: ['connected'],
    run({ url }, note) {
      for (let nth = 0; nth < 500; nth++) {
        void keepOpen(
          url,
          (socket) => {
            const timer = setInterval(() => socket.write('x'), 1_000);
            socket.resume().once('connect', () => note('connected'));
            socket.once('close', () => clearInterval(timer));
          },
          1_000,
        );
      }
    },
  },
];
