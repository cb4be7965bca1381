/** Clients that do not read: their connections are ended, and other clients receive all events. The time for it is scaled down. */
import { afterEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { openRaw } from '../support/raw-socket.js';
import { undisturbed } from '../support/undisturbed.js';

Object.assign(LIMITS, { slowMs: 3_000, slowCheckMs: 20 });

const service = useService();
const endings: (() => void)[] = [];
/** Far more than a connection that nobody reads can take. */
const MAX_SENT = 10_000;

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

test('disconnects a client that pings but does not read, and sends others every event', () =>
  undisturbed(LIMITS.slowMs / 2, (attempt) => checkSlow(`flood-${attempt}`)));

async function checkSlow(flooding: string): Promise<void> {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const slow = await openRaw(service.url, { Authorization: `Bearer ${token}` }, 'EIO=3');
  await slow.next('40');
  const pinging = setInterval(() => slow.socket.send('2'), 100);
  endings.push(
    () => clearInterval(pinging),
    () => slow.socket.terminate(),
  );
  const connected = service.logLines.filter((line) => line.includes('"socket connected"')).at(-1);
  const { socket: id } = JSON.parse(connected ?? '{}');
  const isDisconnected = () =>
    service.logLines.some((line) => line.includes('"socket disconnected"') && line.includes(id));
  const healthy = await service.listen(token);
  slow.pause();
  await service.admin('POST', 'objects', { id: flooding, name: 'Flood' });
  const note = 'x'.repeat(60_000);
  let sent = 0;
  for (; !isDisconnected() && sent < MAX_SENT; sent += 100) {
    const packets = Array.from({ length: 100 }, (_, at) => ({ n: sent + at, note }));
    expect((await service.admin('POST', `objects/${flooding}/packets`, packets)).status).toBe(200);
  }
  expect(isDisconnected()).toBe(true);
  await service.settled();
  expect(healthy.socket.connected).toBe(true);
  const events = healthy.take().filter(({ payload }) => payload.id === flooding);
  expect(events.map(({ payload }) => payload.n)).toEqual(Array.from({ length: sent }, (_, n) => n));
}

test('keeps what waits for many slow clients once, not once for each', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const count = 60;
  for (let at = 0; at < count; at++) {
    const raw = await openRaw(service.url, { Authorization: `Bearer ${token}` }, 'EIO=3');
    await raw.next('40');
    raw.pause();
    endings.push(() => raw.socket.terminate());
  }
  await service.admin('POST', 'objects', { id: 'heavy', name: 'Heavy' });
  const heldBytes = (): number => process.memoryUsage().external;
  const beforeBytes = heldBytes();
  const rounds = 12;
  const packet = { note: 'x'.repeat(50_000) };
  for (let round = 0; round < rounds; round++) {
    expect((await service.admin('POST', 'objects/heavy/packets', Array(20).fill(packet))).status).toBe(200);
  }
  await service.settled();
  const sentBytes = rounds * 20 * packet.note.length;
  // Were it kept for each, it would be sixty times as much, less what the network takes.
  expect(heldBytes() - beforeBytes).toBeLessThan(15 * sentBytes);
});
