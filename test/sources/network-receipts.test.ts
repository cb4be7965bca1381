/** What LoRaWAN networks say later of a command that they have taken: what the journal says then. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { useCommandPeer } from '../support/command-peer.js';
import { useService } from '../support/fixture.js';
import { type Source, useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const sources = useSources(service);
const { createSource, createObject, send } = sources;
const { peer, connect, command, read, becomes } = useCommandPeer(service, sources);

/** The documented events of a downlink; `ID` is the device, `COMMAND` what the system calls the command. */
const TTN_DOWNLINK = {
  session_key_id: 'AXA5',
  f_port: 15,
  f_cnt: 1,
  frm_payload: 'AQ==',
  correlation_ids: ['COMMAND', 'as:downlink:1'],
};
const TTN_DEVICE = { device_id: 'ID', application_ids: { application_id: 'app1' } };
const CHIRPSTACK = { time: '2026-11-24T06:00:00Z', deviceInfo: { devEui: 'ID', deviceName: 'valve' } };
const ttnEvent = (name: string, downlink: object) => ({
  end_device_ids: TTN_DEVICE,
  correlation_ids: ['as:up:1'],
  [name]: downlink,
});

const NETWORK_ID = '07f0ec4c-0b3e-4f10-9d3c-3ff6f4d8b1a5';

/** A command that its network has taken, and a way to send an event of it. */
async function sendThrough(kind: string) {
  peer.text = JSON.stringify({ id: NETWORK_ID });
  const { id, source } = await connect(kind);
  const commandId = await command(id, 'valve', { data: 'AQ==' });
  await becomes(commandId, 'sent');
  const name = kind === 'ttn' ? peer.got[0]?.body.downlinks[0].correlation_ids[0] : NETWORK_ID;
  const tell = async (event: object, query = '', through: Source = source) => {
    const text = JSON.stringify(event).replaceAll('"ID"', `"${id}"`).replaceAll('COMMAND', name);
    const answer = await send(through, JSON.parse(text), query);
    expect([answer.status, answer.body]).toEqual([200, { success: true, count: 0 }]);
    return read(commandId);
  };
  return { id, commandId, tell };
}

test.each<[string, string, object, object]>([
  ['ttn', '', ttnEvent('downlink_sent', TTN_DOWNLINK), { status: 'sent', network: 'sent' }],
  ['ttn', '', ttnEvent('downlink_ack', TTN_DOWNLINK), { status: 'delivered', network: 'sent' }],
  // It is sent again.
  ['ttn', '', ttnEvent('downlink_nack', TTN_DOWNLINK), { status: 'sent', network: 'queued' }],
  ['ttn', '', ttnEvent('downlink_queued', TTN_DOWNLINK), { status: 'sent', network: 'queued' }],
  [
    'ttn',
    '',
    ttnEvent('downlink_failed', { downlink: TTN_DOWNLINK, error: { name: 'x', message_format: 'payload too long' } }),
    { status: 'failed', result: { message: 'payload too long' } },
  ],
  [
    'chirpstack',
    '?event=txack',
    { ...CHIRPSTACK, downlinkId: 1, queueItemId: 'COMMAND', fCntDown: 7 },
    { status: 'sent', network: 'sent' },
  ],
  [
    'chirpstack',
    '?event=ack',
    { ...CHIRPSTACK, queueItemId: 'COMMAND', acknowledged: true },
    { status: 'delivered', network: 'sent' },
  ],
  [
    'chirpstack',
    '',
    { ...CHIRPSTACK, queueItemId: 'COMMAND', acknowledged: true },
    { status: 'delivered', network: 'sent' },
  ],
  [
    'chirpstack',
    '?event=ack',
    { ...CHIRPSTACK, queueItemId: 'COMMAND' },
    { status: 'failed', result: { message: 'the device did not acknowledge it in time' } },
  ],
  [
    'chirpstack',
    '?event=log',
    {
      ...CHIRPSTACK,
      level: 'ERROR',
      code: 'DOWNLINK_PAYLOAD_SIZE',
      description: 'exceeds the max. payload size',
      context: { queue_item_id: 'COMMAND', item_size: '300' },
    },
    { status: 'failed', result: { message: 'exceeds the max. payload size' } },
  ],
  [
    'chirpstack',
    '?event=log',
    { ...CHIRPSTACK, level: 'WARNING', code: 'UPLINK_F_CNT_RESET', context: { queue_item_id: 'COMMAND' } },
    { status: 'sent', network: 'queued' },
  ],
])('is in the journal: %s %s %j', async (kind, query, event, expected) => {
  const { tell } = await sendThrough(kind);
  const stored = await tell(event, query);
  expect(stored).toMatchObject(expected);
  expect(Object.hasOwn(stored.times, 'delivered')).toBe(stored.status === 'delivered');
  // Nothing changes if it is told again, or something earlier is told late.
  const { times } = stored;
  expect((await tell(event, query)).times).toEqual(times);
  expect(Object.keys(stored).filter((name) => name.startsWith('_') && name !== '_id' && name !== '_ts')).toEqual([]);
});

test('never takes back what is known already', async () => {
  const { id, commandId, tell } = await sendThrough('ttn');
  await tell(ttnEvent('downlink_ack', TTN_DOWNLINK));
  const late = [
    ttnEvent('downlink_sent', TTN_DOWNLINK),
    ttnEvent('downlink_failed', { downlink: TTN_DOWNLINK, error: { name: 'x' } }),
  ];
  for (const event of late) expect((await tell(event)).status).toBe('delivered');
  const done = await service.admin('POST', `objects/${id}/commands/${commandId}/result`, { status: 'done' });
  expect(done.status).toBe(200);
  for (const event of late) expect((await tell(event)).status).toBe('done');
});

test.each<[string, readonly [string, object][], object]>([
  ['txack', [['txack', { downlinkId: 1, fCntDown: 7 }]], { status: 'sent', network: 'sent' }],
  [
    'txack and ack',
    [
      ['txack', { downlinkId: 1, fCntDown: 7 }],
      ['ack', { acknowledged: true }],
    ],
    { status: 'delivered', network: 'sent' },
  ],
  ['ack of another', [['ack', { acknowledged: true, queueItemId: NETWORK_ID }]], { status: 'sent', network: 'queued' }],
  [
    'no ack',
    [
      ['ack', { acknowledged: true, queueItemId: NETWORK_ID }],
      ['ack', { acknowledged: false }],
    ],
    { status: 'failed', result: { message: 'the device did not acknowledge it in time' } },
  ],
])(
  'is stored where the network tells it before it answers, since no network tells it again: %s',
  async (_, events, expected) => {
    const downlinkId = '11111111-0b3e-4f10-9d3c-3ff6f4d8b1a5';
    let answer = (): void => undefined;
    Object.assign(peer, {
      text: JSON.stringify({ id: downlinkId }),
      held: new Promise<void>((resolve) => {
        answer = resolve;
      }),
    });
    const { id, source } = await connect('chirpstack');
    const commandId = await command(id, 'valve', { data: 'AQ==' });
    await until(() => peer.got.length === 1, 'the command at the network');
    for (const [name, fields] of events) {
      const event = { ...CHIRPSTACK, deviceInfo: { devEui: id }, queueItemId: downlinkId, ...fields };
      // It is answered although the network has not answered yet.
      expect((await send(source, event, `?event=${name}`)).status).toBe(200);
      expect(await read(commandId)).toMatchObject({ status: 'queued' });
    }
    answer();
    await until(async () => (await read(commandId)).status !== 'queued', 'the answer of the network');
    await becomes(commandId, (expected as { status: string }).status);
    await until(async () => !(await hasEarly(commandId)), 'the receipts to be stored');
    expect(await read(commandId)).toMatchObject(expected);
  },
);

/** Whether receipts wait at a command. */
async function hasEarly(commandId: string): Promise<boolean> {
  const commands = service.client.db().collection('commands');
  return (await commands.findOne({ _id: new ObjectId(commandId), _early: { $exists: true } })) !== null;
}

test('is answered at once where no command is being passed on, and where it names none of them', async () => {
  const { id, commandId, tell } = await sendThrough('chirpstack');
  const event = { ...CHIRPSTACK, queueItemId: 'unknown', acknowledged: true };
  expect((await tell(event, '?event=ack')).status).toBe('sent');
  Object.assign(peer, { status: () => 503 });
  const waiting = await command(id, 'valve', { data: 'AQ==' });
  await until(() => peer.got.length >= 2, 'the command at the network');
  expect((await tell(event, '?event=ack')).status).toBe('sent');
  expect([(await read(waiting)).status, (await read(commandId)).status]).toEqual(['queued', 'sent']);
  // It would be sent again during the next test, whose first command may come later.
  const ended = await service.admin('POST', `objects/${id}/commands/${waiting}/result`, { status: 'failed' });
  expect(ended.status).toBe(200);
});

test('is heard only from the source that has passed the command on, for the object of the device', async () => {
  const { tell } = await sendThrough('ttn');
  const other = await createSource({ kind: 'ttn', commandUrl: peer.url });
  expect((await tell(ttnEvent('downlink_ack', TTN_DOWNLINK), '', other)).status).toBe('sent');
  const { id } = await createObject();
  const wrong = { ...ttnEvent('downlink_ack', TTN_DOWNLINK), end_device_ids: { device_id: id } };
  expect((await tell(wrong)).status).toBe('sent');
  for (const name of ['vigil:', 'vigil:x', `vigil:${'0'.repeat(24)}`, 'COMMAND '.repeat(2)]) {
    const event = ttnEvent('downlink_ack', { ...TTN_DOWNLINK, correlation_ids: [name, 7, null, ['COMMAND']] });
    expect((await tell(event)).status).toBe('sent');
  }
  // A command of which nobody told was not passed on by a source.
  expect((await tell(ttnEvent('downlink_ack', TTN_DOWNLINK))).status).toBe('delivered');
});
