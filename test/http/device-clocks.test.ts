/** Packets of devices whose clocks are wrong: stored with the server's time, whatever the transport. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const service = useService({ env: { PACKET_TIME_AHEAD: '2 min' } });
const startMs = Date.now();
const endings: (() => unknown)[] = [];
let count = 0;

afterAll(async () => {
  for (const end of endings) await end();
});

type Send = (body: unknown) => Promise<unknown>;

async function createSender(transport: 'HTTP' | 'MQTT', fields: object = {}): Promise<{ id: string; send: Send }> {
  const id = `clock-${++count}`;
  await createObject(service.admin, id, fields);
  if (transport === 'HTTP') {
    return {
      id,
      send: async (body) => expect((await service.admin('POST', `objects/${id}/packets`, body)).status).toBe(200),
    };
  }
  const device = await connectDevice(service.service.mqttUrl as string, id);
  endings.push(() => device.end(true));
  return { id, send: (body) => device.publishAsync('base/state', JSON.stringify(body), { qos: 1 }) };
}

/** The packets that have values. */
async function packetsOf(id: string): Promise<{ _ts: number; time: number; deviceTime?: number; v?: number }[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.filter(({ v }: { v?: number }) => v !== undefined);
}

/** Of those that a moment decides, what is sent then. */
const WRONG: readonly (readonly [what: string, time: unknown, deviceTime: number | null])[] = [
  ['of a clock that was reset', 0, 0],
  ['of a clock that was reset, in seconds', 86_400, 86_400],
  ['of a GPS receiver without a fix', '1980-01-06T00:00:00Z', 315_964_800_000],
  ['of a GPS receiver that lost 1,024 weeks twice', 922_752_000, 922_752_000_000],
  ['of the last moment before 2000', '1999-12-31T23:59:59.999Z', 946_684_799_999],
  ['of before 1970', '1969-12-31T23:59:59Z', -1_000],
  ['of an hour before 1970, in seconds', -3_600, -3_600],
  ['of an hour before 1970, in ms as text', '-3600000', -3_600_000],
  ['of 1900, in seconds', -2_208_988_800, Date.UTC(1900, 0, 1)],
  ['of 1970, in ms of 11 digits', 17_955_000_000, 17_955_000_000],
  ['three minutes ahead', () => Date.now() + 3 * MINUTE_MS, null],
  ['ten hours ahead', startMs + 36_000_000, startMs + 36_000_000],
  ['of 2080', '2080-01-01T00:00:00Z', 3_471_292_800_000],
  ['of the last second of 32 bits', 4_294_967_295, 4_294_967_295_000],
];

describe.each(['HTTP', 'MQTT'] as const)('over %s', (transport) => {
  test.each(WRONG)("stores a packet %s with the server's time, and keeps its own", async (_, given, deviceTime) => {
    const { id, send } = await createSender(transport);
    const time = typeof given === 'function' ? given() : given;
    await send({ time, v: 1 });
    const [packet, ...others] = await packetsOf(id);
    expect([packet, others]).toEqual([expect.objectContaining({ deviceTime: deviceTime ?? time, v: 1 }), []]);
    expect(packet?.time).toBe(Math.floor((packet?._ts ?? 0) / 1_000));
  });

  test.each([
    ['of the first moment of 2000', Date.UTC(2000, 0, 1)],
    ['of a GPS receiver that lost 1,024 weeks', 1_176_184_800_000],
    ['of a year ago', startMs - 365 * DAY_MS],
    ['that is as far ahead as the installation permits', startMs + 2 * MINUTE_MS],
  ])('stores a packet %s with its own time', async (_, time) => {
    const { id, send } = await createSender(transport);
    await send({ time, v: 1 });
    expect(await packetsOf(id)).toEqual([expect.objectContaining({ time, v: 1 })]);
    expect((await packetsOf(id))[0]).not.toHaveProperty('deviceTime');
  });

  test('keeps the order of packets of a wrong clock, among others', async () => {
    const { id, send } = await createSender(transport);
    await send([
      { time: startMs - 5_000, v: 1 },
      { time: 3_000, v: 2 },
      { time: 2_000, v: 3 },
    ]);
    await send({ time: 1_000, v: 4 });
    await send({ v: 5 });
    expect((await packetsOf(id)).map(({ v }) => v)).toEqual([1, 2, 3, 4, 5]);
    expect((await service.admin('GET', `objects/${id}`)).body.state.v).toBe(5);
  });

  test('accepts times further ahead than the installation does where a model permits it, never less', async () => {
    const model = async (timeAhead: unknown): Promise<string> =>
      (await service.admin('POST', 'models', { name: 'Forecasts', timeAhead })).body._id;
    const time = startMs + 3_600_000;
    const { id, send } = await createSender(transport, { model: await model('1 day') });
    await send({ time, v: 1 });
    expect(await packetsOf(id)).toEqual([expect.objectContaining({ time })]);
    const other = await createSender(transport, { model: await model(1_000) });
    await other.send({ time: Date.now() + MINUTE_MS, v: 1 });
    await other.send({ time, v: 2 });
    expect((await packetsOf(other.id)).map(({ deviceTime }) => deviceTime)).toEqual([undefined, time].reverse());
  });
});

test('takes no packet for data because its clock is wrong', async () => {
  const { id, send } = await createSender('HTTP');
  await send({ v: 1 });
  await send({ time: 1_000, online: false });
  const { state } = (await service.admin('GET', `objects/${id}`)).body;
  expect(state).toMatchObject({ v: 1, online: false });
});

test('keeps a field deviceTime of the device as a parameter while its clock is right', async () => {
  const { id, send } = await createSender('HTTP');
  await send({ time: startMs, v: 1, deviceTime: '2026-11-26T10:00:00Z' });
  await send({ time: 7, v: 2, deviceTime: '2026-11-26T10:00:00Z' });
  const packets = (await packetsOf(id)).map(({ deviceTime }) => deviceTime);
  expect(packets).toEqual(['2026-11-26T10:00:00Z', 7]);
});

test.each([['soon'], [-1], [true], ['20261123'], ['2 years']])(
  'refuses a model with the allowance %p',
  async (timeAhead) => {
    const { status, body } = await service.admin('POST', 'models', { name: 'Wrong', timeAhead });
    expect([status, body.helper.message]).toEqual([400, expect.stringContaining('timeAhead: ')]);
  },
);
