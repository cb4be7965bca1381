/** Notifications of an organisation whose receivers never answer: others are told nevertheless. */
import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { OK, useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const receiver = useReceiver();
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1' } });

async function createListener(fields: object, topics: readonly string[]): Promise<string> {
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, ...fields });
  const channels = topics.map((topic) => ({ ntfy: receiver.url + topic }));
  expect((await person.call('PATCH', 'account', { channels })).status).toBe(200);
  return person.id;
}

/** Raises an alarm that these users are told of. */
async function raise(id: string, group: object, users: readonly string[]): Promise<void> {
  await service.admin('POST', 'objects', { id, name: id, ...group });
  const fields = { name: id, when: { param: 't', op: '>', value: 8 }, select: { objects: [id] } };
  entityOf(await service.admin('POST', 'rules', { ...fields, then: [{ notify: { users } }], ...group }));
  await service.settled();
  await service.admin('POST', `objects/${id}/packets`, { t: 9 });
}

test('leaves places for others', async () => {
  const { webhookAnswerMs, notificationLanesAtOnce, notificationLanesAtOncePerTenant: most } = LIMITS;
  const held: ServerResponse[] = [];
  Object.assign(LIMITS, { webhookAnswerMs: 600_000 });
  receiver.answer = ({ path }, res) => void (path.startsWith('/slow') ? held.push(res) : res.end());
  try {
    const group = entityOf(await service.admin('POST', 'groups', { name: 'Slow' }))._id;
    const topics = Array.from({ length: LIMITS.channelsPerUser }, (_, nth) => `slow-${nth}`);
    const count = Math.ceil(notificationLanesAtOnce / topics.length) + 1;
    const slow = await Promise.all(Array.from({ length: count }, () => createListener({ group }, topics)));
    await raise('slow', { group }, slow);
    await until(() => held.length >= most, 'receivers that do not answer');
    await raise('other', {}, [await createListener({}, ['other'])]);
    await until(() => receiver.received.some(({ path }) => path === '/other'), 'the message of another');
    expect(held).toHaveLength(most);
  } finally {
    Object.assign(LIMITS, { webhookAnswerMs });
    receiver.answer = OK;
    for (const res of held) res.end();
  }
});
