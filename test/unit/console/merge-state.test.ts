/** The state of an object after packets in any order: as the server computes it. */
import { expect, test } from '@jest/globals';
import { keepOnlineTime, mergeState, type Timed } from '../../../src/console/state/merge-state.js';

interface Packet extends Timed {
  readonly _id: string;
}

const packet = (time: number, online: boolean, parameters: object = {}): Packet => ({
  _id: `p${time}`,
  time,
  online,
  ...parameters,
});
/** Packets by what they say, in the order of arrival: `speed` for those with data. */
const DATA = [packet(1, true, { speed: 1 }), packet(3, true, { speed: 3 }), packet(5, false, { speed: 5 })];
const PRESENCE = [packet(2, false), packet(4, false), packet(6, true)];

const stateOf = (packets: readonly Packet[]) =>
  packets.reduce<Packet | undefined>((state, one) => mergeState(state, one), undefined);

/** All orders of arrival. */
const orders = (packets: readonly Packet[]): Packet[][] =>
  packets.length === 0
    ? [[]]
    : packets.flatMap((one) => orders(packets.filter((other) => other !== one)).map((rest) => [one].concat(rest)));

test.each<[what: string, packets: readonly Packet[], state: object]>([
  ['data and presence', [...DATA, ...PRESENCE], { time: 5, speed: 5, online: true }],
  ['a report that it is offline', [DATA[0], DATA[1], PRESENCE[1]] as Packet[], { time: 3, speed: 3, online: false }],
  ['older reports', [DATA[0], PRESENCE[2], PRESENCE[1]] as Packet[], { time: 1, speed: 1, online: true }],
  ['an older packet that is online', [DATA[0], DATA[1], PRESENCE[1], PRESENCE[0]] as Packet[], { online: false }],
  ['only presence', PRESENCE, { time: 6, online: true }],
])('is the latest with data, and online by the latest of all: %s', (_what, packets, state) => {
  for (const order of orders(packets)) expect(stateOf(order)).toMatchObject(state);
});

test('is the same if nothing newer came', () => {
  const state = stateOf([packet(3, true, { speed: 3 }), packet(4, false)]) as Packet;
  for (const older of [packet(1, true), packet(2, true, { speed: 2 })]) {
    expect(mergeState(state, older)).toEqual(state);
  }
});

test('stays offline when it is loaded again and then an older packet comes', () => {
  const known = stateOf([packet(3, true, { speed: 3 }), packet(9, false)]) as Packet;
  const loaded = packet(3, false, { speed: 3 });
  keepOnlineTime(loaded, known);
  expect(mergeState(loaded, packet(5, true, { speed: 5 }))).toMatchObject({ speed: 5, online: false });
  expect(mergeState(loaded, packet(10, true, { speed: 10 }))).toMatchObject({ speed: 10, online: true });
});
