/** The digest of a shift, over real alarms, commands, notes and reports of presence: what is in it, and for whom. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Answer, type Call, startTestService, type TestService } from '../support/fixture.js';
import { eventually } from '../support/until.js';

const MINUTE = 60_000;
type Row = Readonly<Record<string, unknown>>;

let service: TestService;
let vans: string;
let van: string;
let startMs: number;
let operator: Person;
let neighbour: Person;
let command: string;

const WHOLE = (): string => `objects=${van}&from=${startMs - MINUTE}`;

async function ask(query: string, call: Call = service.admin): Promise<Answer['body']> {
  const { status, body } = await call('GET', `reports/shift?${query}`);
  expect([query, status]).toEqual([query, 200]);
  return body;
}

const ofKind = (rows: readonly Row[], kind: string): Row[] => rows.filter((row) => row.kind === kind);

beforeAll(async () => {
  service = await startTestService();
  startMs = Date.now() - 30 * MINUTE;
  const create = async (store: string, fields: object): Promise<string> => {
    const { status, body, text } = await service.admin('POST', store, fields);
    if (status !== 200) throw new Error(`${store}: ${text}`);
    return body._id;
  };
  vans = await create('groups', { name: 'Vans' });
  const others = await create('groups', { name: 'Others' });
  operator = await createPerson(service, { role: OPERATOR_ROLE_ID, group: vans });
  neighbour = await createPerson(service, { role: VIEWER_ROLE_ID, group: others });
  van = await create('objects', { id: `van-${new ObjectId()}`, name: 'Van', group: vans });
  await create('rules', {
    name: 'Hot',
    group: vans,
    select: { objects: [van] },
    when: { param: 'temp', op: '>', value: 50 },
  });
  const packets = [
    { time: startMs, online: false },
    { time: startMs + 5 * MINUTE, temp: 20 },
    { time: startMs + 10 * MINUTE, online: false },
  ];
  expect((await service.admin('POST', `objects/${van}/packets`, packets)).status).toBe(200);
  const sent = await operator.call('POST', `objects/${van}/commands/stop`, { secret: 'of the command' });
  expect(sent.status).toBe(200);
  [{ _id: command }] = (await service.admin('GET', `objects/${van}/commands`)).body;
  await operator.call('POST', `objects/${van}/notes`, { text: '=The "door"\nwas open', time: startMs + 2 * MINUTE });
  await eventually(async () => {
    // A rule holds from its first packet on: sent until it is known.
    expect((await service.admin('POST', `objects/${van}/packets`, { temp: 80 })).status).toBe(200);
    expect((await service.admin('GET', 'alarms')).body).toHaveLength(1);
  });
  const [alarm] = (await service.admin('GET', 'alarms')).body;
  expect((await operator.call('POST', `alarms/${alarm._id}/acknowledge`, {})).status).toBe(200);
});

afterAll(() => service?.stop());

describe('the digest of a shift', () => {
  test('has alarms, commands, notes and times offline, with who did it', async () => {
    const { rows, totals, cut, missing } = await ask(WHOLE());
    expect([totals, cut, missing]).toEqual([{ objects: 1, rows: 5 }, null, []]);
    const by = { user: operator.id, login: operator.login };
    expect(ofKind(rows, 'alarm')).toMatchObject([
      { text: 'Hot', status: 'raised', severity: 'warning', to: null, acknowledged: expect.any(Number), ...by },
    ]);
    expect(ofKind(rows, 'command')).toMatchObject([{ text: 'stop', status: 'queued', to: null, ...by }]);
    expect(ofKind(rows, 'note')).toMatchObject([
      { from: startMs + 2 * MINUTE, to: null, text: '=The "door"\nwas open', user: null, login: operator.login },
    ]);
    expect(ofKind(rows, 'offline')).toMatchObject([
      { from: startMs, to: startMs + 5 * MINUTE },
      { from: startMs + 10 * MINUTE, to: expect.any(Number) },
    ]);
    const times = rows.map(({ from }: Row) => from);
    expect(times).toEqual([...times].sort((one, other) => one - other));
    expect(JSON.stringify(rows)).not.toContain('of the command');
  });

  test('has what is open or goes on at the ends of its interval, and nothing from outside', async () => {
    const early = await ask(`objects=${van}&from=${startMs + MINUTE}&to=${startMs + 3 * MINUTE}`);
    expect(early.rows.map(({ kind, from, to }: Row) => [kind, from, to])).toEqual([
      ['offline', startMs, null],
      ['note', startMs + 2 * MINUTE, null],
    ]);
    const later = await ask(`objects=${van}&from=${Date.now() + MINUTE}&to=${Date.now() + 2 * MINUTE}`);
    expect(later.rows).toMatchObject([{ kind: 'alarm', status: 'raised' }]);
    const before = await ask(`objects=${van}&from=${startMs - 2 * MINUTE}&to=${startMs - MINUTE}`);
    expect([before.rows, before.totals]).toEqual([[], { objects: 1, rows: 0 }]);
  });

  test('says how commands and alarms ended', async () => {
    const result = await service.admin('POST', `objects/${van}/commands/${command}/result`, { status: 'done' });
    expect(result.status).toBe(200);
    const [alarm] = (await service.admin('GET', 'alarms')).body;
    await operator.call('POST', `alarms/${alarm._id}/clear`, {});
    const { rows } = await ask(WHOLE());
    expect(ofKind(rows, 'command')).toMatchObject([{ status: 'done', to: expect.any(Number) }]);
    expect(ofKind(rows, 'alarm')).toMatchObject([{ status: 'cleared', to: expect.any(Number) }]);
    const later = `objects=${van}&from=${Date.now() + MINUTE}&to=${Date.now() + 2 * MINUTE}`;
    expect((await ask(later)).rows).toEqual([]);
    // It was open then.
    const [{ from, to }] = ofKind(rows, 'alarm') as [{ from: number; to: number }];
    expect(ofKind((await ask(`objects=${van}&from=${to}&to=${to}`)).rows, 'alarm')).toMatchObject([{ from, to }]);
  });

  test('shows nothing to a neighbour', async () => {
    for (const query of [WHOLE(), `group=${vans}&from=${startMs}`, `from=${startMs}`]) {
      const { rows, totals, missing } = await ask(query, neighbour.call);
      expect([rows, totals, missing]).toEqual([[], { objects: 0, rows: 0 }, []]);
    }
    expectRefusal(await service.as(null)('GET', `reports/shift?${WHOLE()}`), 401);
  });

  const PARTS: readonly [missing: string, scopes: string[], kind: string][] = [
    ['alarms', ['GET /objects/*', 'GET /users'], 'alarm'],
    [
      'commands',
      ['GET /objects/:id', 'GET /objects/:id/notes', 'GET /objects/:id/packets', 'GET /alarms', 'GET /users'],
      'command',
    ],
    [
      'notes',
      ['GET /objects/:id', 'GET /objects/:id/commands', 'GET /objects/:id/packets', 'GET /alarms', 'GET /users'],
      'note',
    ],
    [
      'packets',
      ['GET /objects/:id', 'GET /objects/:id/commands', 'GET /objects/:id/notes', 'GET /alarms', 'GET /users'],
      'offline',
    ],
  ];
  test.each(PARTS)('leaves out what the caller may not read, and says so: %s', async (part, scopes, kind) => {
    const { token } = (await service.admin('POST', 'tokens', { name: part, scopes })).body;
    const all = await ask(WHOLE());
    const { rows, missing } = await ask(WHOLE(), service.as(token));
    expect(missing).toEqual([part]);
    expect(rows).toEqual(all.rows.filter((row: Row) => row.kind !== kind));
    const { text } = await service.as(token)('GET', `reports/shift?${WHOLE()}&format=csv`);
    expect(text).toMatch(new RegExp(`\r\n#not permitted: ${part}\r\n$`));
  });

  test('names no users to a caller who may not read users', async () => {
    const { token } = (await service.admin('POST', 'tokens', { name: 'x', scopes: ['GET /objects/*', 'GET /alarms'] }))
      .body;
    const { rows, missing } = await ask(WHOLE(), service.as(token));
    expect(missing).toEqual(['users']);
    expect(ofKind(rows, 'command')).toMatchObject([{ user: operator.id, login: null }]);
  });

  test('is a CSV with times of the zone and without formulas', async () => {
    const { text, headers } = await service.admin(
      'GET',
      `reports/shift?objects=${van}&from=${startMs}&tz=Europe/Berlin&format=csv`,
    );
    expect(headers['content-disposition']).toMatch(/^attachment; filename="shift-/);
    expect(text).toMatch(/^object,id,name,kind,from,to,text,status,severity,acknowledged,user,login\r\n/);
    expect(text).toMatch(/,note,\d{4}-\d{2}-\d{2}T\S+\+0[12]:00,,"'=The ""door""\nwas open",,,,,user-/);
    expect(text).not.toContain('#');
  });

  test('is refused for more rows than it may have', async () => {
    const usual = LIMITS.reportObjectRows;
    Object.assign(LIMITS, { reportObjectRows: 2 });
    const answer = await service.admin('GET', `reports/shift?${WHOLE()}`);
    Object.assign(LIMITS, { reportObjectRows: usual });
    expect([answer.status, answer.body.helper.message]).toEqual([
      413,
      expect.stringMatching(/^more than 2 rows of one object: /),
    ]);
  });

  test.each([
    ['', 'from'],
    ['from=2020-01-01', 'from'],
    ['from=2026-11-16&limit=-1', 'limit'],
  ])('is refused with a 400 that names the parameter: %s', async (query, name) => {
    const { status, body } = await service.admin('GET', `reports/shift?${query}`);
    expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(new RegExp(`^${name}: `))]);
  });
});
