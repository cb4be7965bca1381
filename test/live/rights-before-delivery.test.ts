/** A user is moved, and connects to an instance whose change stream does not know it yet. */
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { type Listener, openListener, startSecond, useService } from '../support/fixture.js';
import { type Fate, startLine } from '../support/lossy-connection.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** A way to the database on which the change stream can be held back. */
class HeldStream {
  uri = '';
  /** Whether a read of the stream is held back. */
  isHeld = false;
  /** Whether a user was read. */
  hasReadUser = false;
  #release: (() => void) | null = null;
  #released: Promise<void> | null = null;

  async start(): Promise<void> {
    const toClient = (uri: string): MongoClient => {
      this.uri = uri;
      return new MongoClient(uri);
    };
    const line = await startLine(service.mongodbUri, (asked) => this.#decide(asked), toClient);
    endings.push(line.stop, () => this.release());
  }

  async hold(): Promise<void> {
    this.#released = new Promise((resolve) => {
      this.#release = resolve;
    });
    await until(() => this.isHeld, 'the change stream to be held back');
  }

  release(): void {
    this.#released = null;
    this.#release?.();
  }

  #decide(asked: Buffer): Fate {
    if (asked.includes('users') && asked.includes('find')) this.hasReadUser = true;
    if (this.#released === null || !asked.includes('getMore') || !asked.includes('$cmd.aggregate')) return 'passes';
    this.isHeld = true;
    return this.#released;
  }
}

const made = async (path: string, body: object) => {
  const { status, body: answer } = await service.admin('POST', path, body);
  expect(status).toBe(200);
  return answer;
};

/** Two groups, and a user of the second one. */
async function makeUser(name: string) {
  const group = await made('groups', { name: `${name}: a tenant` });
  const other = await made('groups', { name: `${name}: another tenant` });
  const role = await made('roles', { name, credentials: ['GET /*'] });
  const login = { login: name, password: 'a long password of theirs' };
  const user = await made('users', { ...login, role: role._id, group: other._id });
  const token = await service.tokenOf(login.login, login.password);
  return { group, other, user, token };
}

/** An instance of which the change stream can be held back. */
async function startLate() {
  const stream = new HeldStream();
  await stream.start();
  return { stream, late: await startSecond({ ...service, mongodbUri: stream.uri }, endings) };
}

const namesOf = (listener: Listener): unknown[] => listener.take().map(({ name, payload }) => payload.n ?? name);

test('sends nothing of an object that was removed before the user was moved to its group', async () => {
  const { group, user, token } = await makeUser('moved in');
  const { stream, late } = await startLate();
  for (const id of ['gone', 'stays']) {
    await made('objects', { id, name: id, group: group._id });
    await made(`objects/${id}/packets`, { n: 1 });
  }
  await late.settled();
  await stream.hold();
  await made('objects/gone/packets', { n: 2 });
  expect((await service.admin('DELETE', 'objects/gone')).status).toBe(200);
  await made(`users/${user._id}/move`, { group: group._id });

  stream.hasReadUser = false;
  const connected = openListener(late.url, token, {}, 'everything');
  await Promise.race([connected, until(() => stream.hasReadUser, 'its rights to be read')]);
  // One that would not wait is connected by then.
  for (let nth = 0; nth < 5; nth++) await fetch(`${late.url}/health`);
  stream.release();
  const listener = await connected;
  await made('objects/stays/packets', { n: 3 });
  await until(() => listener.received().some(({ payload }) => payload.n === 3), 'the packet of the other object');
  expect(namesOf(listener)).toEqual([3]);
  listener.close();
});

test('sends nothing of an object that was moved to the group after the user had left it', async () => {
  const { group, other, user, token } = await makeUser('moved out');
  for (const [id, { _id }] of Object.entries({ later: group, near: other })) {
    await made('objects', { id, name: id, group: _id });
  }
  // It does not know yet who sees them.
  const { stream, late } = await startLate();
  const listener = await openListener(late.url, token, {}, 'everything');
  await stream.hold();
  await made('objects/later/packets', { n: 1 });
  await made('objects/near/packets', { n: 2 });
  await made(`users/${user._id}/move`, { group: group._id });
  await made('objects/later/move', { group: other._id });
  stream.release();
  await until(() => listener.received().some(({ name }) => name === 'gap'), 'the gap of a user who was moved');
  await late.settled();
  await listener.subscribe({});
  expect(namesOf(listener)).toEqual([2, 'gap', 'object-removed']);
  listener.close();
});
