/** A connection that takes nothing of what it is told is ended, and nobody else notices. The time for it is scaled down. */
import { afterEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/model/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { openRaw } from '../support/raw-socket.js';

Object.assign(LIMITS, { slowMs: 3_000, slowCheckMs: 20 });

const service = useService();
const endings: (() => void)[] = [];

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

test('a client that pings but does not read is cut off; others hear everything', async () => {
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
  const isCutOff = () => service.logLines.some((line) => line.includes('"socket disconnected"') && line.includes(id));
  const healthy = await service.listen(token);
  slow.pause();
  await service.admin('POST', 'objects', { id: 'flood', name: 'Flood' });
  const note = 'x'.repeat(60_000);
  let sent = 0;
  for (; !isCutOff() && sent < 3_000; sent += 100) {
    const packets = Array.from({ length: 100 }, (_, at) => ({ n: sent + at, note }));
    expect((await service.admin('POST', 'objects/flood/packets', packets)).status).toBe(200);
  }
  expect(isCutOff()).toBe(true);
  await service.settled();
  expect(healthy.socket.connected).toBe(true);
  expect(healthy.take().map(({ payload }) => payload.n)).toEqual(Array.from({ length: sent }, (_, n) => n));
});

test('what waits for many slow clients is kept once, not once for each', async () => {
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
  const [rounds, packet] = [12, { note: 'x'.repeat(50_000) }];
  for (let round = 0; round < rounds; round++) {
    expect((await service.admin('POST', 'objects/heavy/packets', Array(20).fill(packet))).status).toBe(200);
  }
  await service.settled();
  const toldBytes = rounds * 20 * packet.note.length;
  // Were it kept for each, it would be sixty times as much, less what the network takes.
  expect(heldBytes() - beforeBytes).toBeLessThan(15 * toldBytes);
});
