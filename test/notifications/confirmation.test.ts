/** The confirmation of addresses: nothing but a code is sent to one until its user has entered it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { codeIn, confirmAddress, lastCode } from '../support/channels.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { type MailServer, startMailServer } from '../support/mail-server.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const TOKEN = '123:secret-of-the-bot';
const OWN_TEXT = 'Buy cheap watches';
const receiver = useReceiver();
let mail: MailServer;
let service: TestService;
let tenant: string;
let count = 0;

beforeAll(async () => {
  mail = await startMailServer();
  service = await startTestService({
    env: {
      WEBHOOK_NETWORKS: '127.0.0.1',
      SMTP_URL: mail.url,
      MAIL_FROM: 'alarms@vigil.example',
      TELEGRAM_TOKEN: TOKEN,
      TELEGRAM_URL: receiver.url,
    },
  });
  tenant = entityOf(await service.admin('POST', 'groups', { name: 'Tenant' }))._id;
});
afterAll(async () => {
  await service?.stop();
  await mail?.stop();
});
beforeEach(() => {
  mail.mails.length = 0;
});

const newAddress = (): string => `user-${count++}@example.com`;
/** Somebody who does not belong to the operator. */
const createMember = (fields: object = {}): Promise<Person> => createPerson(service, { group: tenant, ...fields });
const admin = (): Promise<Person> => createMember({ role: ADMINISTRATOR_ROLE_ID });
const setChannels = (person: Person, ...channels: object[]) => person.call('PATCH', 'account', { channels });
const testChannel = (person: Person, channel: object) => person.call('POST', 'account/channels/test', { channel });
const confirm = (person: Person, channel: object, code: unknown) =>
  person.call('POST', 'account/channels/confirm', { channel, code });
const channelsOf = async (person: Person) => (await person.call('GET', 'account')).body.channels;

/** A user whose mail address is confirmed. */
async function createConfirmed(): Promise<Person & { channel: { email: string } }> {
  const person = await admin();
  const channel = { email: newAddress() };
  await setChannels(person, channel);
  await confirmAddress(person, mail, channel.email);
  return { ...person, channel };
}

/** An alarm whose texts its rule chooses; resolves when another user has been told of it. */
async function raise(...persons: Person[]): Promise<string> {
  const objectId = entityOf(
    await service.admin('POST', 'objects', { id: `told-${count++}`, name: OWN_TEXT, group: tenant }),
  )._id;
  const witness = await admin();
  const topic = `witness-${witness.id}`;
  await setChannels(witness, { ntfy: receiver.url + topic });
  const users = [...persons, witness].map(({ id }) => id);
  const rule = { name: OWN_TEXT, when: { param: 't', op: '>', value: 8 }, select: { objects: [objectId] } };
  await service.admin('POST', 'rules', { ...rule, then: [{ notify: { users, text: OWN_TEXT } }] });
  for (let index = 0; index < 3; index++) await service.settled();
  await service.admin('POST', `objects/${objectId}/packets`, { t: 9 });
  await until(() => receiver.received.some(({ path }) => path === `/${topic}`), 'the witness to be told');
  return objectId;
}

async function notifiedOf(objectId: string): Promise<{ user: string; error?: string }[]> {
  const { body } = await service.admin('GET', `alarms?where.object=${objectId}`);
  return body[0].notified ?? [];
}

describe('an address that is not confirmed', () => {
  test('is sent nothing of an alarm, which says so, and its messages once it is confirmed', async () => {
    const ada = await admin();
    const channel = { email: newAddress() };
    await setChannels(ada, channel, { telegram: '-4711' });
    const objectId = await raise(ada);
    await until(async () => (await notifiedOf(objectId)).length === 3, 'the alarm to say whom it was told');
    const ofAda = (await notifiedOf(objectId)).filter(({ user }) => user === ada.id);
    const expected = { step: 'raised', error: 'the address is not confirmed' };
    expect(ofAda).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ channel: 'email', ...expected }),
        expect.objectContaining({ channel: 'telegram', ...expected }),
      ]),
    );
    expect(mail.mails).toEqual([]);
    expect(receiver.received.filter(({ path }) => path.startsWith('/bot'))).toEqual([]);

    await confirmAddress(ada, mail, channel.email);
    await raise(ada);
    await until(() => mail.mails.length === 1, 'a mail');
    expect(mail.mails[0]?.text).toContain(OWN_TEXT);
  });

  test('is sent a code by the test, in a text that nobody chooses', async () => {
    const ada = await createMember({ name: OWN_TEXT });
    const channel = { email: newAddress() };
    await setChannels(ada, channel);
    const { body } = await testChannel(ada, channel);
    expect(body.channels).toEqual([{ channel, sent: true, error: null, confirmed: false }]);
    expect(mail.mails).toHaveLength(1);
    const [sent] = mail.mails;
    expect(sent?.to).toEqual([channel.email]);
    expect(codeIn(sent?.text)).toMatch(/^[0-9A-Z]{5}-[0-9A-Z]{5}$/);
    expect(sent?.text).not.toContain(OWN_TEXT);
    expect(sent?.text).not.toContain(ada.login);
    await service.settled();
    expect(service.logLines.join('')).not.toContain(codeIn(sent?.text));
  });

  test('is confirmed by the code, in any spelling, and then tested', async () => {
    const ada = await createMember();
    const channel = { email: newAddress() };
    await setChannels(ada, channel, { ntfy: `${receiver.url}x` });
    expect(await channelsOf(ada)).toEqual([
      { ...channel, confirmed: false },
      { ntfy: `${receiver.url}x`, confirmed: true },
    ]);
    await testChannel(ada, channel);
    const code = lastCode(mail, channel.email);
    const spelling = ` ${code.toLowerCase().replace('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')}`;
    const { status, body } = await confirm(ada, channel, spelling);
    expect([status, body]).toEqual([200, { channel, confirmed: true, success: true }]);
    expect((await channelsOf(ada))[0]).toEqual({ ...channel, confirmed: true });
    expect((await testChannel(ada, channel)).body.channels).toEqual([
      { channel, sent: true, error: null, confirmed: true },
    ]);
    expect(mail.mails[1]?.text).toContain('Subject: Test');
    expect(codeIn(mail.mails[1]?.text)).toBe('');
    expect((await confirm(ada, channel, 'anything')).status).toBe(200);
  });

  test('is confirmed over Telegram as well', async () => {
    const ada = await createMember();
    const channel = { telegram: '-100200' };
    await setChannels(ada, channel);
    await testChannel(ada, channel);
    const [sent] = receiver.received.filter(({ path }) => path === `/bot${TOKEN}/sendMessage`);
    expect(await channelsOf(ada)).toEqual([{ ...channel, confirmed: false }]);
    const { text } = (sent?.body ?? {}) as { text?: string };
    expect((await confirm(ada, { telegram: -100200 }, codeIn(text))).status).toBe(200);
    expect(await channelsOf(ada)).toEqual([{ ...channel, confirmed: true }]);
  });
});

describe('a confirmation', () => {
  test('stays when other channels change, and ends with its address', async () => {
    const ada = await createConfirmed();
    const { channel } = ada;
    const other = { email: newAddress() };
    // As `GET /account` returned it.
    await setChannels(ada, { ...channel, confirmed: true }, { ...other, confirmed: true });
    expect(await channelsOf(ada)).toEqual([
      { ...channel, confirmed: true },
      { ...other, confirmed: false },
    ]);
    await ada.call('PATCH', 'account', { name: 'Ada', minSeverity: 'warning' });
    expect((await channelsOf(ada))[0]).toEqual({ ...channel, confirmed: true });
    await setChannels(ada, { email: `x${channel.email}` });
    expect(await channelsOf(ada)).toEqual([{ email: `x${channel.email}`, confirmed: false }]);
    await setChannels(ada, channel);
    expect(await channelsOf(ada)).toEqual([{ ...channel, confirmed: false }]);
  });

  test('is of its user and of its address alone', async () => {
    const ada = await createConfirmed();
    const bob = await createMember();
    const other = { email: newAddress() };
    await setChannels(bob, ada.channel, other);
    expect((await channelsOf(bob))[0]).toEqual({ ...ada.channel, confirmed: false });
    await testChannel(bob, other);
    const code = lastCode(mail, other.email);
    expectRefusal(await confirm(bob, ada.channel, code), 409, 'no code is valid for this channel');
    await setChannels(ada, ada.channel, other);
    expectRefusal(await confirm(ada, other, code), 409, 'no code is valid for this channel');
    expect((await confirm(bob, other, code)).status).toBe(200);
  });

  test('is refused without a valid code or channel', async () => {
    const ada = await createMember();
    const channel = { email: newAddress() };
    expectRefusal(await confirm(ada, channel, 'ABCDE-FGHJK'), 409, 'channel: not one of yours');
    await setChannels(ada, channel);
    const REFUSED: [body: object, mention: string][] = [
      [{}, 'channel: expected'],
      [{ channel }, 'code: required'],
      [{ channel, code: null }, 'code: required'],
      [{ channel, code: 1234567890 }, 'code: expected a text'],
      [{ channel, code: '' }, 'code: required'],
      [{ channel: { email: 'x' }, code: 'ABCDE-FGHJK' }, 'channel.email: expected an email address'],
      [{ channel: { ...channel, confirmed: 'yes' }, code: 'ABCDE-FGHJK' }, 'channel.confirmed: expected'],
    ];
    for (const [body, mention] of REFUSED) {
      const { status, body: answer } = await ada.call('POST', 'account/channels/confirm', body);
      expect([status, answer.helper?.message]).toEqual([400, expect.stringContaining(mention)]);
    }
    expect(await channelsOf(ada)).toEqual([{ ...channel, confirmed: false }]);
  });

  test('has few attempts, after which the right code is refused too', async () => {
    const ada = await createMember();
    const channel = { email: newAddress() };
    await setChannels(ada, channel);
    await testChannel(ada, channel);
    const code = lastCode(mail, channel.email);
    for (let left = LIMITS.channelCodeAttempts - 1; left >= 0; left--) {
      expectRefusal(await confirm(ada, channel, 'ABCDE-FGHJK'), 400, `${left} more`);
    }
    expectRefusal(await confirm(ada, channel, code), 409, 'no code is valid for this channel');
    await testChannel(ada, channel);
    expectRefusal(await confirm(ada, channel, code), 400, 'code: not the one that was sent');
    expect((await confirm(ada, channel, lastCode(mail, channel.email))).status).toBe(200);
  });

  test('is refused once the code has expired, which is stored as a hash', async () => {
    const ada = await createMember();
    const channel = { email: newAddress() };
    await setChannels(ada, channel);
    await testChannel(ada, channel);
    const code = lastCode(mail, channel.email);
    const codes = service.client.db().collection('channelCodes');
    const stored = await codes.findOne({ user: new ObjectId(ada.id) });
    expect(JSON.stringify(stored)).not.toContain(code.replace('-', ''));
    await codes.updateOne({ _id: stored?._id }, { $set: { expires: new Date(0) } });
    expectRefusal(await confirm(ada, channel, code), 409, 'no code is valid for this channel');
  });
});

describe('codes', () => {
  test('are few for an address, whoever asks for them and however it is spelled', async () => {
    const address = newAddress();
    const [local, domain] = address.split('@');
    const spellings = [address, address.toUpperCase(), `${local}+x@${domain}`, `${local}+y+z@${domain}`];
    for (let index = 0; index < LIMITS.channelCodesPerAddress; index++) {
      const person = await createMember();
      const { body } = await testChannel(person, { email: spellings[index % spellings.length] });
      expect(body.channels).toMatchObject([{ sent: true }]);
    }
    const { body } = await testChannel(await createMember(), { email: address });
    expect(body.channels).toMatchObject([{ sent: false, confirmed: false, error: expect.stringContaining('codes') }]);
    expect(mail.mails).toHaveLength(LIMITS.channelCodesPerAddress);
  });

  test('are few for a user', async () => {
    const ada = await createMember();
    for (let index = 0; index < LIMITS.channelCodesPerUser; index++) {
      expect((await testChannel(ada, { email: newAddress() })).body.channels).toMatchObject([{ sent: true }]);
    }
    const { body } = await testChannel(ada, { email: newAddress() });
    expect(body.channels).toMatchObject([{ sent: false, error: expect.stringContaining('codes') }]);
    expect(mail.mails).toHaveLength(LIMITS.channelCodesPerUser);
    // Messages to addresses that are no longer foreign do not count.
    expect((await testChannel(ada, { ntfy: `${receiver.url}x` })).body.channels).toMatchObject([{ sent: true }]);
  });
});

describe('a member of the root group', () => {
  test('is the operator, and needs no code for an address', async () => {
    const ada = await createPerson(service);
    const channel = { email: newAddress() };
    expect((await testChannel(ada, channel)).body.channels).toEqual([
      { channel, sent: true, error: null, confirmed: true },
    ]);
    await setChannels(ada, channel);
    expect(await channelsOf(ada)).toEqual([{ ...channel, confirmed: true }]);
    expect((await setChannels(await createMember(), { ...channel, confirmed: true })).body.channels).toEqual([
      { ...channel, confirmed: false },
    ]);
  });
});
