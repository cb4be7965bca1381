// The attacks of one tenant, or of a client without a login, while another tenant works. Each is a row, and runs in a process of its
// own (attacker.ts).
import type { Attack, Attacker, Note } from './asking.js';
import { headOf, keepAsking, keepOpen } from './asking.js';
import { LIVE_ATTACKS } from './live-attacks.js';
import { STRANGERS } from './strangers.js';

const MIB = 1_024 * 1_024;
const BODY_BYTES = 16 * MIB;
/** Values that would confuse a driver, a schema or a conversion. */
const HOSTILE: readonly unknown[] = [
  { a: { _bsontype: 1 } },
  { a: [{ b: { _bsontype: 'ObjectId', id: 'x' } }] },
  { on: { toString: 1 } },
  { on: { valueOf: { toString: 1 } } },
  { toJSON: 1, toBSON: 1 },
];

const postTo =
  (clients: number, make: () => string) =>
  (attacker: Attacker, note: Note): void => {
    const body = Buffer.from(make());
    keepAsking(clients, attacker, note, () => ({ method: 'POST', path: `objects/${attacker.many}/packets`, body }));
  };

/** Requests pages, and reads nothing of them after the first bytes. */
function openUnread({ url, token, large }: Attacker, note: Note, pages: number): void {
  const head = headOf(`GET /api/v1/objects/${large}/packets`, { Authorization: `Bearer ${token}` });
  void keepOpen(url, (socket) => {
    socket.write(head.repeat(pages));
    socket.once('data', (data) => {
      socket.pause();
      note(Number(data.toString('latin1', 9, 12)));
    });
  });
}

const repeated = (item: string, bytes: number): string =>
  `[${Array(Math.floor(bytes / (item.length + 1)))
    .fill(item)
    .join()}]`;
const packets = (count: number, fields: number): string =>
  JSON.stringify(
    Array.from({ length: count }, (_, packet) =>
      Object.fromEntries(Array.from({ length: fields }, (_, field) => [`field${field}`, packet + field])),
    ),
  );

/** The `_id` that the other tenant gives to the packet of this number: 24 hexadecimal digits. */
export const packetIdOf = (nth: number): string => `f${nth.toString(16).padStart(23, '0')}`;

const SHARED_WORK: readonly Attack[] = [
  {
    name: 'values that the driver does not write, in packets, changes and new entities',
    answers: [200, 400],
    run: (attacker, note) =>
      keepAsking(8, attacker, note, (nth, client) => {
        const body = HOSTILE[nth % HOSTILE.length] as object;
        if (client % 3 === 0) return { method: 'PATCH', path: `objects/${attacker.device}`, body: { config: body } };
        if (client % 3 === 1) return { method: 'POST', path: 'labels', body: { name: 'x', ...body } };
        return { method: 'POST', path: `objects/${attacker.device}/packets`, body: [{ speed: 1 }, body] };
      }),
  },
  {
    name: 'objects with the ids of others',
    answers: [400, 409],
    run: (attacker, note) =>
      keepAsking(4, attacker, note, (nth, client) => {
        const id = ['*', ' ', attacker.neighbourId, attacker.neighbour][nth % 4];
        if (client % 2 === 0) return { method: 'PATCH', path: `objects/${attacker.many}`, body: { id } };
        return { method: 'POST', path: 'objects', body: { id, name: 'x' } };
      }),
  },
  {
    name: 'packets under the keys that the neighbour is about to use',
    answers: [200],
    run: (attacker, note) =>
      keepAsking(2, attacker, note, (nth, client) => {
        const from = (2 * nth + client) * 100;
        const body = Array.from({ length: 100 }, (_, at) => ({ _id: packetIdOf(from + at), speed: 1 }));
        return { method: 'POST', path: `objects/${attacker.many}/packets`, body };
      }),
  },
  {
    name: 'users, roles and groups that change all the time',
    answers: [200],
    run(attacker, note) {
      keepAsking(4, attacker, note, (nth, client) =>
        nth === 0
          ? { method: 'POST', path: 'groups', body: { name: `g${client}` } }
          : { method: 'POST', path: 'roles', body: { name: `r${nth}-${client}`, credentials: ['GET /objects'] } },
      );
      keepAsking(4, attacker, note, (nth) => ({
        method: 'PATCH',
        path: `objects/${attacker.device}`,
        body: { status: `${nth}` },
      }));
    },
  },
];

const COSTS: readonly Attack[] = [
  {
    name: '120 counts and sorts without an index',
    answers: [200, 429],
    run: (attacker, note) =>
      keepAsking(120, attacker, note, (nth, client) => {
        const query = nth % 2 === 0 ? `meta=true&search=x${client}` : `sortBy=speed&limit=5&where.fuel=${client}`;
        return { path: `objects/${attacker.many}/packets?${query}` };
      }),
  },
  {
    name: '40 connections that do not read pages of 30 MB',
    answers: [200, 429],
    isHeavy: true,
    run(attacker, note) {
      for (let nth = 0; nth < 40; nth++) openUnread(attacker, note, 1);
    },
  },
  {
    name: '40 requests for pages of 30 MB at once on one connection',
    answers: [200],
    isHeavy: true,
    run: (attacker, note) => openUnread(attacker, note, 40),
  },
  {
    name: 'four at once send 16 MiB of empty objects',
    answers: [400],
    isHeavy: true,
    run: postTo(4, () => repeated('{}', BODY_BYTES)),
  },
  {
    name: 'four at once send 8 million lists in lists',
    answers: [400],
    isHeavy: true,
    run: postTo(4, () => '['.repeat(8 * MIB) + ']'.repeat(8 * MIB)),
  },
  {
    name: '20 at once send 250 kB of empty objects',
    answers: [400],
    isHeavy: true,
    run: postTo(20, () => repeated('{}', 250_000)),
  },
  {
    name: 'eight at once send 10,000 packets of 50 fields',
    answers: [200, 429],
    isHeavy: true,
    run: postTo(8, () => packets(10_000, 50)),
  },
  {
    name: 'schemas that cost as much as permitted, and some that would cost more',
    answers: [400],
    run(attacker, note) {
      const items = Array.from({ length: 9_000 }, (_, at) => at);
      const text = `${'a'.repeat(60_000)}!`;
      keepAsking(4, attacker, note, (nth) => ({
        method: 'POST',
        path: attacker.costlyStore,
        body: nth % 2 === 0 ? { items } : { text },
      }));
      const schema = { properties: { text: { pattern: `^(${'a?'.repeat(400)}){20}$` } } };
      keepAsking(2, attacker, note, (nth) => ({ method: 'POST', path: 'stores', body: { name: `c${nth}`, schema } }));
    },
  },
  {
    name: 'waits for commands of the attacker’s and of the neighbour’s object',
    answers: [404, 429],
    run: (attacker, note) =>
      keepAsking(400, attacker, note, (_, client) => ({
        path: `objects/${client % 2 === 0 ? attacker.many : attacker.neighbour}/commands?wait=50`,
      })),
  },
];

export const ATTACKS: readonly Attack[] = [...SHARED_WORK, ...COSTS, ...LIVE_ATTACKS, ...STRANGERS];
