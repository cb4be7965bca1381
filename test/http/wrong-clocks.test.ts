/** Objects whose devices have a wrong clock say so, until a packet has a right time again. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { wrongClockCheckMs: 20, wrongClockWrittenMs: 100 });
const service = useService();
const endings: (() => unknown)[] = [];
const startMs = Date.now();
let count = 0;

afterAll(async () => {
  for (const end of endings) await end();
});

interface Clock {
  readonly since: number;
  readonly packets: number;
  readonly deviceTime: number;
}

const clockOf = async (id: string): Promise<Clock | null | undefined> =>
  (await service.admin('GET', `objects/${id}`)).body.wrongClock;
const untilClock = (id: string, isMeant: (clock: Clock | null | undefined) => boolean): Promise<void> =>
  until(async () => isMeant(await clockOf(id)), 'the object to say how its clock is');

const TRANSPORTS = [
  ['HTTP', async (id: string) => (body: unknown) => service.admin('POST', `objects/${id}/packets`, body)],
  [
    'MQTT',
    async (id: string) => {
      const device = await connectDevice(service.service.mqttUrl as string, id);
      endings.push(() => device.end(true));
      return (body: unknown) => device.publishAsync('base/state', JSON.stringify(body), { qos: 1 });
    },
  ],
] as const;

describe.each(TRANSPORTS)('an object whose device sends wrong times over %s', (_, connect) => {
  test('says since when its clock is wrong, in how many packets, and that it is right again', async () => {
    const id = `wrong-${++count}`;
    const objectId = await createObject(service.admin, id);
    const send = await connect(id);
    await send({ v: 0 });
    await service.settled();
    const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
    endings.push(() => listener.close());
    await send({ time: 1_000, v: 1 });
    await untilClock(id, (clock) => clock?.packets === 1);
    const first = (await clockOf(id)) as Clock;
    expect(first).toEqual({ since: expect.any(Number), packets: 1, deviceTime: 1_000 });
    await send([
      { time: '2080-01-01T00:00:00Z', v: 2 },
      { time: 5_000, v: 3 },
    ]);
    // Without a time of its own, a packet says nothing about the clock.
    await send({ v: 4 });
    await untilClock(id, (clock) => clock?.packets === 3);
    expect(await clockOf(id)).toEqual({ since: first.since, packets: 3, deviceTime: 5_000 });
    const { body } = await service.admin('GET', `objects?where.id=${id}`);
    expect(body[0].wrongClock).toEqual({ since: first.since, packets: 3, deviceTime: 5_000 });
    await send({ time: startMs, v: 5 });
    await untilClock(id, (clock) => clock === null);
    await service.settled();
    const updates = listener.take().filter(({ name, payload }) => name === 'object-update' && payload.id === objectId);
    expect(updates.at(0)?.payload.after).toEqual({ wrongClock: first });
    expect(updates.at(-1)?.payload.after).toEqual({ wrongClock: null });
    expect(updates.every(({ payload }) => Object.keys(payload.after).join() === 'wrongClock')).toBe(true);
    await send({ time: 2_000, v: 6 });
    await untilClock(id, (clock) => clock?.packets === 1);
  });
});

test('says no more often that a clock is wrong which is right and wrong in turn', async () => {
  const usualMs = LIMITS.wrongClockWrittenMs;
  const id = `wrong-${++count}`;
  await createObject(service.admin, id);
  const send = (time: number) => service.admin('POST', `objects/${id}/packets`, { time, v: 1 });
  await send(1);
  await untilClock(id, (clock) => clock?.packets === 1);
  (LIMITS as { wrongClockWrittenMs: number }).wrongClockWrittenMs = 3_600_000;
  await send(startMs);
  await untilClock(id, (clock) => clock === null);
  await send(2);
  // What is noted later is written.
  const witness = `wrong-${++count}`;
  await createObject(service.admin, witness);
  await service.admin('POST', `objects/${witness}/packets`, { time: 1, v: 1 });
  await untilClock(witness, (clock) => clock?.packets === 1);
  expect(await clockOf(id)).toBe(null);
  (LIMITS as { wrongClockWrittenMs: number }).wrongClockWrittenMs = usualMs;
  await untilClock(id, (clock) => clock?.deviceTime === 2);
});

test('writes nothing at objects whose clock is right, or that send no times', async () => {
  const id = `wrong-${++count}`;
  const witness = `wrong-${++count}`;
  for (const one of [id, witness]) await createObject(service.admin, one);
  await service.admin('POST', `objects/${id}/packets`, [{ time: startMs, v: 1 }, { v: 2 }]);
  await service.admin('POST', `objects/${witness}/packets`, { time: 1, v: 1 });
  await untilClock(witness, (clock) => clock?.packets === 1);
  expect((await service.admin('GET', `objects/${id}`)).body).not.toHaveProperty('wrongClock');
});

test('ignores the field in bodies', async () => {
  const id = `wrong-${++count}`;
  await createObject(service.admin, id, { wrongClock: { since: 1 } });
  await service.admin('PATCH', `objects/${id}`, { wrongClock: { since: 2 }, status: 'x' });
  expect((await service.admin('GET', `objects/${id}`)).body).not.toHaveProperty('wrongClock');
});
