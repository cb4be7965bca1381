/** One tenant sends any JSON; the requests of another tenant at the same time succeed, as without it. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { jsonObjectText } from '../support/any-json.js';
import { type Answer, type Call, type Listener, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const service = useService();
const PASSWORD = 'long enough';
/** Two tenants, each in a group of its own. */
let hostile: Call;
let honest: Call;
let listener: Listener;
let label: string;

beforeAll(async () => {
  const roles = await service.admin('GET', 'roles?where.name=administrator&only=_id');
  for (const login of ['hostile', 'honest']) {
    const { body: group } = await service.admin('POST', 'groups', { name: login });
    const user = { login, password: PASSWORD, role: roles.body[0]._id, group: group._id };
    await service.admin('POST', 'users', user);
    await service.as(await service.tokenOf(login, PASSWORD))('POST', 'objects', { id: `${login}-car`, name: login });
  }
  const token = await service.tokenOf('honest', PASSWORD);
  hostile = service.as(await service.tokenOf('hostile', PASSWORD));
  honest = service.as(token);
  label = (await hostile('POST', 'labels', { name: 'mine' })).body._id;
  listener = await service.listen(token);
});

/** The concurrent requests of the honest tenant. */
function honestWork(n: number): Promise<Answer>[] {
  return [
    honest('POST', 'labels', { n }),
    honest('PATCH', 'objects/honest-car', { status: `s${n}` }),
    honest('POST', 'objects/honest-car/packets', { n }),
    honest('POST', 'objects/honest-car/packets', [{ n }, { n }]),
    honest('POST', 'objects/honest-car/commands/go', { n }),
    honest('GET', 'objects/honest-car'),
    honest('GET', `labels?where.n=${n}`),
  ];
}

const WAYS: [where: string, send: (text: string) => Promise<Answer>][] = [
  ['a new entity', (text) => hostile('POST', 'labels', text)],
  ['a field of a new entity', (text) => hostile('POST', 'labels', `{"config":${text}}`)],
  ['a change', (text) => hostile('PATCH', `labels/${label}`, text)],
  ['a field of a change', (text) => hostile('PATCH', 'objects/hostile-car', `{"config":${text}}`)],
  ['a packet', (text) => hostile('POST', 'objects/hostile-car/packets', text)],
  [
    'one of several packets',
    (text) => hostile('POST', 'objects/hostile-car/packets?atomic=true', `[{"a":1},{"a":${text}}]`),
  ],
  ['the parameters of a command', (text) => hostile('POST', 'objects/hostile-car/commands/go', text)],
];

let n = 0;
async function expectApart(send: (text: string) => Promise<Answer>, text: string): Promise<Answer> {
  n++;
  listener.take();
  const [answer, ...answers] = await Promise.all([send(text), ...honestWork(n), send(text)]);
  expect(answers.slice(0, -1).map(({ status }) => status)).toEqual(Array(7).fill(200));
  expect([200, 400]).toContain(answer.status);
  await service.settled();
  const received = listener.take().map(({ name, payload }) => [name, payload.n ?? payload.after?.status ?? 'go']);
  expect(received.sort()).toEqual([
    ['object-command-req', 'go'],
    ...Array.from({ length: 3 }, () => ['object-packet', n]),
    ['object-update', `s${n}`],
  ]);
  return answer;
}

describe.each(WAYS)('%s', (_, send) => {
  test.each(['{"a":{"_bsontype":1}}', '{"a":[{"b":{"_bsontype":"ObjectId"}}]}', '{"_bsontype":null}'])(
    'refuses %s',
    async (text) => {
      const { status, body } = await expectApart(send, text);
      expect({ status, message: body.helper?.message }).toEqual({
        status: 400,
        message: expect.stringContaining('_bsontype'),
      });
    },
  );

  test('stores or refuses any JSON, without an effect on the other tenant', async () => {
    await fc.assert(
      fc.asyncProperty(jsonObjectText, async (text) => {
        const { status, body } = await expectApart(send, text);
        if (status === 400) expect(body.helper.message).not.toBe('');
      }),
      { numRuns: runsOf(40) },
    );
  });
});
