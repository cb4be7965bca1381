/** Failed logins of devices never block correct passwords of devices or users. */
import { afterEach, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';

const service = useService();
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
});

const nextId = (): string => `thing-${++count}`;

/** 0 where the device is let in, the code of CONNACK where it is not, undefined where the connection ends without one. */
async function codeOf(id: string, options: IClientOptions = {}): Promise<number | undefined> {
  try {
    clients.push(await connectDevice(service.service.mqttUrl as string, id, options));
    return 0;
  } catch (error) {
    return (error as { code?: number }).code;
  }
}

const fail = (id: string) => codeOf(id, { password: 'wrong' });
const { loginFailuresPerAccount: few } = LIMITS;

test('ends further failed logins of a device without an answer, but accepts its correct password from the same address', async () => {
  const id = nextId();
  const other = nextId();
  for (const one of [id, other]) await createObject(service.admin, one);
  const codes = [];
  for (let at = 0; at <= few; at++) codes.push(await fail(id));
  // Such an error is temporary: the connection ends without a CONNACK, which clients treat as final.
  expect(codes).toEqual([...Array(few).fill(4), undefined]);
  expect(await codeOf(id)).toBe(0);
  expect(await fail(other)).toBe(4);
  expect(await codeOf(other)).toBe(0);
});

test('accepts a correct password after too many failures of unknown devices from the same address', async () => {
  const id = nextId();
  await createObject(service.admin, id);
  const batch = 20;
  for (let at = 0; at < LIMITS.loginFailuresPerAddress; at += batch) {
    await Promise.all(Array.from({ length: batch }, (_, one) => fail(`missing-${at + one}`)));
  }
  expect(await fail('one-more')).toBeUndefined();
  expect(await codeOf(id)).toBe(0);
});

test('does not count failures with the login of a user for logins over HTTP', async () => {
  const attempts = () => service.client.db().collection('attempts').countDocuments();
  const before = await attempts();
  const login = nextId();
  await service.admin('POST', 'users', { login, password: 'long enough' });
  await Promise.all(Array.from({ length: LIMITS.loginFailuresEverywhere + 10 }, () => fail(login)));
  expect(await attempts()).toBe(before);
  expect(await service.tokenOf(login, 'long enough')).toEqual(expect.any(String));
});
