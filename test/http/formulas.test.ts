/** Formulas of models over HTTP: parameters are calculated before a packet is stored, and what has no result is audited once. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
let count = 0;

const toData = (...children: readonly object[]) => ({ type: 'subsystem', children });
const KMH = { type: 'argument', id: 'kmh', dataType: 'number', formula: 'p.speed * 3.6' };
const SHARE = { type: 'argument', id: 'share', formula: 'p.part / p.whole' };

async function createObject(...children: readonly object[]): Promise<{ model: string; objectId: string }> {
  const model = entityOf(await service.admin('POST', 'models', { name: 'model', data: toData(...children) }))._id;
  const id = `calculated-${count++}`;
  return { model, objectId: entityOf(await service.admin('POST', 'objects', { id, name: id, model }))._id };
}

test('stores what is calculated, in single packets and in arrays, and tells rules of it', async () => {
  const { objectId } = await createObject(KMH);
  const when = { param: 'kmh', op: '>', value: 90 };
  entityOf(await service.admin('POST', 'rules', { name: 'fast', when, select: { objects: [objectId] } }));
  expect(entityOf(await service.admin('POST', `objects/${objectId}/packets`, { speed: 10 })).kmh).toBe(36);
  // Later than the first one, however soon after it.
  const time = Date.now();
  const packets = [
    { speed: 20, time: time + 1 },
    { t: 1, time: time + 2 },
    { speed: 30, time: time + 3 },
  ];
  expect((await service.admin('POST', `objects/${objectId}/packets`, packets)).status).toBe(200);
  const { body } = await service.admin('GET', `objects/${objectId}/packets?sortBy=-time&limit=3`);
  expect(body.map(({ kmh }: { kmh?: number }) => kmh)).toEqual([108, undefined, 72]);
  await until(async () => {
    const { body: alarms } = await service.admin('GET', `alarms?where.object=${objectId}`);
    return alarms[0]?.values?.kmh === 108;
  }, 'an alarm');
});

test('stores null for what has no result, and one event', async () => {
  const { model, objectId } = await createObject(SHARE);
  for (const whole of [0, 'all', 0]) {
    const packet = entityOf(await service.admin('POST', `objects/${objectId}/packets`, { part: 1, whole }));
    expect([packet.part, packet.share]).toEqual([1, null]);
  }
  const list = () => service.admin('GET', `audit?where.entity=${model}&where.action=formula failed`);
  await until(async () => (await list()).body.length > 0, 'an event');
  const { body } = await list();
  expect(body[0]).toMatchObject({ action: 'formula failed', fields: [expect.stringContaining('share: ')] });
  // The minute may end between two packets.
  expect(body.length).toBeLessThanOrEqual(2);
});

const TEXT = { type: 'argument', id: 'twice', dataType: 'string', formula: 'p.text + p.text' };
const bytesOf = (parameters: object): number => Buffer.byteLength(JSON.stringify(parameters));
/** Parameters of so many bytes of JSON. */
const sized = (bytes: number): { text: string; filler: string } => {
  const text = 'a'.repeat(1_000);
  return { text, filler: 'b'.repeat(bytes - bytesOf({ text, filler: '' })) };
};

test.each<[string, number, boolean, unknown]>([
  ['null for results that would make it too large', LIMITS.packetBytes - 1_000, false, null],
  ['no results for which there is no room at all', LIMITS.packetBytes, false, undefined],
  ['null for results that would make it too large, in an array', LIMITS.packetBytes - 1_000, true, null],
  ['no results for which there is no room at all, in an array', LIMITS.packetBytes, true, undefined],
])('stores the packet that was sent, and %s', async (_about, bytes, isList, expected) => {
  const { model, objectId } = await createObject(TEXT);
  const sent = sized(bytes);
  const answer = await service.admin('POST', `objects/${objectId}/packets`, isList ? [{ text: 'a' }, sent] : sent);
  expect(answer.status).toBe(200);
  const { body } = await service.admin('GET', `objects/${objectId}/packets?sortBy=-_ts&limit=1`);
  expect([body[0].filler === sent.filler, body[0].twice]).toEqual([true, expected]);
  const list = () => service.admin('GET', `audit?where.entity=${model}&where.action=formula failed`);
  await until(async () => (await list()).body.length > 0, 'an event');
  expect((await list()).body[0].fields).toEqual([expect.stringContaining('twice: ')]);
});

test('refuses a packet that is too large without its results', async () => {
  const { objectId } = await createObject(TEXT);
  const { status, body } = await service.admin('POST', `objects/${objectId}/packets`, sized(LIMITS.packetBytes + 1));
  expect([status, body.helper.message]).toEqual([
    413,
    expect.stringContaining(`this one has ${LIMITS.packetBytes + 1}`),
  ]);
});

test('refuses a model whose formulas have no order, and keeps the one before', async () => {
  const { model, objectId } = await createObject(KMH);
  const circle = toData({ ...KMH, formula: 'p.kmh + 1' });
  const refused = await service.admin('PATCH', `models/${model}`, { data: circle });
  expect([refused.status, refused.body.helper.message]).toEqual([
    400,
    'data.children.0.formula: calculated of itself: kmh, kmh',
  ]);
  expect(entityOf(await service.admin('POST', `objects/${objectId}/packets`, { speed: 10 })).kmh).toBe(36);
  entityOf(await service.admin('PATCH', `models/${model}`, { data: toData({ ...KMH, formula: 'p.speed * 2' }) }));
  await service.settled();
  expect(entityOf(await service.admin('POST', `objects/${objectId}/packets`, { speed: 10 })).kmh).toBe(20);
});
