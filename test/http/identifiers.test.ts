/** Identifiers of digits: they arrive as they were sent, over HTTP and MQTT, in packets, commands and entities. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { entityOf, expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const ICCID = '8944110068765432109';
let device: MqttClient;

beforeAll(async () => {
  await createObject(service.admin, 'sim');
  device = await connectDevice(service.service.mqttUrl as string, 'sim');
});
afterAll(() => void device?.end(true));

const packets = async () => (await service.admin('GET', 'objects/sim/packets?sortBy=-_ts&limit=1')).body;

describe('an integer that a double cannot hold', () => {
  test.each<[sent: string, kept: object]>([
    [`{"iccid":${ICCID}}`, { iccid: ICCID }],
    [`{"a":{"b":[1,-${ICCID}]}}`, { a: { b: [1, `-${ICCID}`] } }],
    ['{"n":9007199254740991,"m":9007199254740993}', { n: 9_007_199_254_740_991, m: '9007199254740993' }],
    ['{"time":1795500000123456789,"v":1}', { time: 1_795_500_000_123, v: 1 }],
  ])('is kept as text in a packet: %s', async (sent, kept) => {
    expect(entityOf(await service.admin('POST', 'objects/sim/packets', sent))).toMatchObject(kept);
    await device.publishAsync('base/state', sent, { qos: 1 });
    const { body } = await service.admin('GET', 'objects/sim/packets?sortBy=-_ts&limit=2');
    expect(body).toMatchObject([kept, kept]);
  });

  test('is kept as text in a large body, in another encoding, in an entity and in a command', async () => {
    const long = `[${Array.from({ length: 400 }, () => `{"iccid":${ICCID},"x":"${'y'.repeat(300)}"}`).join(',')}]`;
    expect((await service.admin('POST', 'objects/sim/packets', long)).body).toEqual({ success: true, count: 400 });
    expect(await packets()).toMatchObject([{ iccid: ICCID }]);
    const object = `{"id":"long","name":"long","iccid":${ICCID},"config":{"imsi":${ICCID}}}`;
    expect(entityOf(await service.admin('POST', 'objects', object))).toMatchObject({
      iccid: ICCID,
      config: { imsi: ICCID },
    });
    const patch = `{"config":{"imsi":-${ICCID}}}`;
    expect(entityOf(await service.admin('PATCH', 'objects/long', patch)).config.imsi).toBe(`-${ICCID}`);
    await service.admin('POST', 'objects/sim/commands/setSim', `{"iccid":${ICCID}}`);
    expect((await service.admin('GET', 'objects/sim/commands')).body[0].params).toEqual({ iccid: ICCID });
  });

  test('is refused for a declared number, and kept for declared text', async () => {
    const argument = (id: string, dataType: string) => ({ id, type: 'argument', dataType });
    const data = { children: [argument('n', 'number'), argument('s', 'string')] };
    const model = entityOf(await service.admin('POST', 'models', { name: 'typed', data }))._id;
    await service.admin('POST', 'objects', { id: 'typed', name: 'typed', model });
    for (const sent of [`{"n":${ICCID}}`, `{"n":"${ICCID}"}`]) {
      expectRefusal(await service.admin('POST', 'objects/typed/packets', sent), 400, `n: expected a number of at most`);
    }
    expect(entityOf(await service.admin('POST', 'objects/typed/packets', `{"s":${ICCID},"n":"0012"}`))).toMatchObject({
      s: ICCID,
      n: 12,
    });
  });

  test('stays malformed where it is no JSON', async () => {
    for (const sent of [`{"a":0${ICCID}}`, `{${ICCID}:1}`, `{"a":+${ICCID}}`]) {
      expectRefusal(await service.admin('POST', 'objects/sim/packets', sent), 400, 'not valid JSON');
    }
  });
});

test.each<[payload: string, value: unknown]>([
  ['12E45678', '12E45678'],
  ['12e5', '12e5'],
  ['0012', '0012'],
  ['1.10', '1.10'],
  [ICCID, ICCID],
  [`"${ICCID}"`, ICCID],
  ['+4915112345678', '+4915112345678'],
  ['21.5', 21.5],
  ['-21.5', -21.5],
  ['+21.5', 21.5],
  ['0', 0],
  ['true', true],
  ['{"tag":"0012","iccid":8944110068765432109}', { tag: '0012', iccid: ICCID }],
])(
  'keeps the plain payload %s of a topic as it was sent, unless it is a number that prints back',
  async (payload, value) => {
    await device.publishAsync('base/state/tag', payload, { qos: 1 });
    await until(async () => (await packets())[0]?.tag !== undefined, 'the packet');
    expect((await packets())[0].tag).toEqual(value);
  },
);
