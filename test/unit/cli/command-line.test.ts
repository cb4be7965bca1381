/** The command line without a service: what it compares, reads from files and prints. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { findDifferences, isEqual, referencesIn, resolveReferences, toChange } from '../../../src/cli/apply-plan.js';
import { parsePairs } from '../../../src/cli/command.js';
import { parseManifest, readManifests } from '../../../src/cli/manifest.js';
import { createOutput, fieldOf } from '../../../src/cli/output.js';
import { chooseProfile, profileFile, readProfile, writeProfile } from '../../../src/cli/profile.js';
import { parseRecording } from '../../../src/cli/recording.js';
import { printStoreTypes } from '../../../src/cli/store-commands.js';

const folder = mkdtempSync(join(tmpdir(), 'vigil-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('apply', () => {
  test.each([
    ['nothing where all is as wanted', { a: 1, b: [1, { c: 2 }], d: 4 }, { b: [1, { c: 2 }], a: 1 }, []],
    ['a value', { a: 1 }, { a: 2 }, ['a']],
    ['a field that is new', {}, { a: false }, ['a']],
    ['fields of nested objects', { a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, ['a.c']],
    ['whole lists', { a: [1, 2] }, { a: [2, 1] }, ['a']],
    ['nothing where a field is to be removed that is not there', { login: 'x' }, { login: 'x', email: null }, []],
    ['a field to be removed', { email: 'a@b.example' }, { email: null }, ['email']],
    ['no password of what is there', { login: 'x' }, { login: 'x', password: 'p' }, []],
  ])('finds %s', (_, current, wanted, paths) => {
    const differences = findDifferences(current, wanted);
    expect(differences.map(({ names }) => names.join('.'))).toEqual(paths);
    expect(findDifferences({ ...current, ...wanted }, wanted)).toEqual([]);
  });

  test('changes only what differs', () => {
    const wanted = { name: 'a', config: { auth: { user: 'u', realm: 'r' }, rate: 2 } };
    const current = { name: 'a', config: { auth: { user: 'x', realm: 'r' }, rate: 1, kept: true } };
    expect(toChange(findDifferences(current, wanted))).toEqual({ config: { auth: { user: 'u' }, rate: 2 } });
  });

  test.each([
    ['the file names what every object inherits', { toString: 'x' }, ['toString']],
    ['a nested name is inherited', { config: { valueOf: 1, hasOwnProperty: { a: 1 } } }, ['config']],
    ['null stands for an inherited name that is not there', { toString: null }, []],
    ['a name contains a dot', { 'a.b': { c: 1 } }, ['a.b']],
  ])('treats names as fields where %s', (_, wanted: Record<string, unknown>, names) => {
    const differences = findDifferences({}, wanted);
    expect(differences.map((difference) => difference.names.join(','))).toEqual(names);
    const entity = toChange(differences);
    expect(findDifferences(entity, wanted)).toEqual([]);
    expect(Object.keys(entity)).toEqual(names);
  });

  test('merges into a field that is named as an inherited one without changing what all objects share', () => {
    const differences = findDifferences({ toString: { a: 1 } }, { toString: { a: 2 } });
    expect(JSON.stringify(toChange(differences))).toBe('{"toString":{"a":2}}');
    expect(Object.keys(Object.prototype.toString)).toEqual([]);
  });

  test('compares objects whatever the order of their fields', () => {
    expect(isEqual({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 })).toBe(true);
    expect(isEqual({ a: 1 }, { a: 1, b: undefined })).toBe(true);
    expect(isEqual([1], { 0: 1 })).toBe(false);
  });

  test('finds and resolves references', () => {
    const value = { model: { $ref: 'models/Truck' }, list: [{ $ref: 'groups/Fleet' }], name: 'x' };
    expect(referencesIn(value)).toEqual(['models/Truck', 'groups/Fleet']);
    expect(resolveReferences(value, (name) => name.toUpperCase())).toEqual({
      model: 'MODELS/TRUCK',
      list: ['GROUPS/FLEET'],
      name: 'x',
    });
  });
});

describe('files', () => {
  test('reads YAML documents, lists and JSON', () => {
    const yaml = 'store: models\nname: A\n---\n- { store: objects, id: o }\n- { store: users, login: u }\n---\n';
    const json = '[{"store": "labels", "name": "L"}]';
    const found = [...parseManifest(yaml, 'a.yaml'), ...parseManifest(json, 'b.json')];
    expect(found.map(({ store, name, key }) => [store, name, key])).toEqual([
      ['models', 'A', 'name'],
      ['objects', 'o', 'id'],
      ['users', 'u', 'login'],
      ['labels', 'L', 'name'],
    ]);
  });

  test.each([
    ['store: models', 'has no "name"'],
    ['name: A', 'has no "store"'],
    ['store: ../users\nname: A', 'has no "store"'],
    ['- 1', 'expected entities'],
    ['a: [', 'a.yaml: '],
    ['store: constructor\nid: x', 'an entity of constructor has no "name"'],
    ['store: models\nname: A\nself: &self { a: *self }', 'a.yaml: models/A.self.a.a.'],
    [`a: &a [x]\nb: &b [${'*a, '.repeat(30)}]\nc: [${'*b, '.repeat(30)}]`, 'Excessive alias count'],
  ])('refuses %j', (text, reason) => expect(() => parseManifest(text, 'a.yaml')).toThrow(reason));
});

describe('names of prototypes', () => {
  const RESERVED = ['__proto__', 'constructor', 'prototype', '_bsontype'];

  test.each(
    RESERVED.flatMap((name) => [
      [`store: objects\nid: o\n${name}: { polluted: 1 }`, `a.yaml: objects/o.${name}`],
      [`store: objects\nid: o\nconfig: { list: [{ "${name}": 1 }] }`, `a.yaml: objects/o.config.list[0].${name}`],
      [`{"store": "models", "name": "M", "data": {"${name}": {"polluted": 1}}}`, `a.yaml: models/M.data.${name}`],
      [`- { store: users, login: u }\n- { store: users, login: v, ? ${name} : 1 }`, `a.yaml: users/v.${name}`],
      [`%YAML 1.1\n---\nstore: labels\nname: L\n<<: { a: { ${name}: x } }`, `a.yaml: labels/L.a.${name}`],
    ]),
  )('are refused in files: %j', (text, place) => {
    expect(() => parseManifest(text, 'a.yaml')).toThrow(`${place}: a field cannot be named`);
  });

  test.each(
    RESERVED.flatMap((name) => [
      [`${name}=1`, name],
      [`a={"b":[{"${name}":{"polluted":1}}]}`, `a.b[0].${name}`],
    ]),
  )('are refused in arguments: %s', (word, place) => {
    expect(() => parsePairs(['x=1', word])).toThrow(`${place}: a field cannot be named`);
  });

  test.each(RESERVED)('are refused as columns of recordings: %s', (name) => {
    expect(() => parseRecording(`time,${name},speed\n1795500000000,1,2`)).toThrow(`A column cannot be named "${name}"`);
  });

  test('are no fields of what is printed', () => {
    expect(['constructor', '__proto__.toString', 'a.length', 'a.x'].map((path) => fieldOf({ a: 'x' }, path))).toEqual(
      Array(4).fill(undefined),
    );
  });
});

describe('the stored login', () => {
  test('can be read by its user alone', async () => {
    const file = join(folder, 'vigil', 'login.json');
    expect(await readProfile(file)).toBeNull();
    await writeProfile(file, { url: 'http://a', token: 't', login: 'l', expiresAt: 1 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await readProfile(file)).toMatchObject({ token: 't' });
  });

  const stored = { url: 'http://a:1', token: 'stored', login: 'l', expiresAt: 1 };

  test.each([
    ['what is stored', {}, undefined, { url: 'http://a:1', token: 'stored' }],
    ['no stored token for another address', {}, 'http://b', { url: 'http://b', token: null }],
    ['the environment', { VIGIL_URL: 'b:2/', VIGIL_TOKEN: 'e' }, undefined, { url: 'http://b:2', token: 'e' }],
    ['an argument before the environment', { VIGIL_URL: 'http://b' }, 'a:1', { url: 'http://a:1', token: 'stored' }],
  ])('uses %s', (_, env, url, chosen) => expect(chooseProfile(env, stored, url)).toEqual(chosen));

  test('is in the configuration folder of the system', () => {
    expect(profileFile({ XDG_CONFIG_HOME: '/x' }, 'linux')).toBe(join('/x', 'vigil', 'login.json'));
    expect(profileFile({ APPDATA: '/y' }, 'win32')).toBe(join('/y', 'vigil', 'login.json'));
  });
});

describe('output', () => {
  function printed(isJson: boolean, use: (output: ReturnType<typeof createOutput>) => void): string {
    let text = '';
    const stream = { isTTY: false, write: (more: string) => (text += more) };
    use(createOutput({ isJson, stdout: stream, stderr: { write: () => true }, noColor: false }));
    return text;
  }
  const rows = (output: ReturnType<typeof createOutput>): void => {
    const table = output.rows(['id', 'state.speed', 'avg.x']);
    table.row({ id: 'a', state: { speed: 5 }, 'avg.x': 1 });
    table.row({ id: 'longer\u001b[2J' });
    table.end();
  };

  test('is a table without colours where there is no terminal, and without what steers one', () => {
    expect(printed(false, rows)).toBe('id      state.speed  avg.x\na       5            1\nlonger\n');
  });

  test('is one JSON text per line for programs', () => {
    expect(
      printed(true, rows)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ).toHaveLength(2);
    expect(printed(true, (output) => output.one({ a: 1, success: true }))).toBe('{"a":1}\n');
  });
});

test('keeps digits that a number would change, in arguments and in files', () => {
  expect(
    parsePairs(['code=12E45678', 'pin=0012', 'iccid=8944110068765432109', 'v=1.10', 'n=-21.5', 'tel=+4915112345678']),
  ).toEqual({
    code: '12E45678',
    pin: '0012',
    iccid: '8944110068765432109',
    v: '1.10',
    n: -21.5,
    tel: '+4915112345678',
  });
  const yaml = `
store: objects
id: o1
pin: 0012
tag: 12E45678
iccid: 8944110068765432109
imei: 860000000000019
hex: 0x1F
tel: +4915112345678
lat: 48.100
list: [0012, 12, {sn: 8944110068765432109}]
`;
  const kept = {
    pin: '0012',
    tag: '12E45678',
    iccid: '8944110068765432109',
    imei: 860_000_000_000_019,
    hex: '0x1F',
    tel: '+4915112345678',
    lat: 48.1,
    list: ['0012', 12, { sn: '8944110068765432109' }],
  };
  expect(parseManifest(yaml, 'a.yaml')[0]?.fields).toMatchObject(kept);
  const json = '{"store":"objects","id":"o1","iccid":8944110068765432109,"n":[9007199254740993]}';
  expect(parseManifest(json, 'a.json')[0]?.fields).toMatchObject({
    iccid: '8944110068765432109',
    n: ['9007199254740993'],
  });
});

test.each<[name: string, file: string, text: string, fields: object]>([
  [
    'numbers of JSON',
    'a.json',
    '{"n":1e3,"m":-0.50,"k":1E-7,"big":1e400}',
    { n: 1_000, m: -0.5, k: 1e-7, big: '1e400' },
  ],
  ['tags of YAML', 'a.yaml', '{n: 1e3, m: .inf, k: .nan, o: 0o17}', { n: '1e3', m: '.inf', k: '.nan', o: '0o17' }],
  ['bytes of YAML', 'a.yaml', '{key: !!binary aGk=}', { key: 'aGk=' }],
  ['anchors of YAML', 'a.yaml', '{a: &a {x: 1}, b: {<<: *a, y: 2}}', { a: { x: 1 }, b: { x: 1, y: 2 } }],
])('keeps values of a file as they are written: %s', (_, file, text, fields) => {
  const [body = ''] = /(?<=\{).*(?=\}$)/s.exec(text) ?? [];
  expect(parseManifest(`{"store":"objects","id":"o1",${body}}`, file)[0]?.fields).toMatchObject(fields);
});

test('takes digits for the name of an entity, as they are written', () => {
  const names = (text: string) => parseManifest(text, 'a.yaml').map(({ name, fields }) => [name, fields.id]);
  expect(names('[{store: objects, id: 4711}, {store: objects, id: 0012}]')).toEqual([
    ['4711', '4711'],
    ['0012', '0012'],
  ]);
  expect(() => names('{store: objects, id: true}')).toThrow('no "id"');
});

test.each(['Z\xfcrich', '\xff\xfes\0t\0'])(
  'refuses a file that is not UTF-8, which would change its letters',
  async (text) => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, Buffer.from(`store: labels\nname: ${text}\n`, 'latin1'));
    await expect(readManifests(file)).rejects.toThrow(`${file} is not UTF-8`);
  },
);

test('reads parameters as JSON where they are JSON', () => {
  expect(parsePairs(['n=3', 'on=true', 'mode=eco', 'list=[1]', 'equal=a=b', 'empty='])).toEqual({
    n: 3,
    on: true,
    mode: 'eco',
    list: [1],
    equal: 'a=b',
    empty: '',
  });
  expect(() => parsePairs(['novalue'])).toThrow('novalue');
});

test('prints types of stores, with references and without end', () => {
  const tree = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
  const shift = {
    properties: { driver: { $ref: '#/$defs/person' }, hours: { type: 'number' } },
    required: ['driver'],
    $defs: { person: { type: 'object', properties: { name: { type: 'string' } } } },
  };
  const text = printStoreTypes([
    { name: 'trees', schema: tree },
    { name: 'night-shifts', schema: shift },
  ]);
  expect(text).toContain('export type NightShift = {\n  driver: {\n    name?: string;\n  };\n  hours?: number;\n};');
  expect(text).toContain("'night-shifts': NightShift;\n  'trees': Tree;");
  expect(text.length).toBeLessThan(5_000);
});

test('completes commands and options in bash', async () => {
  const { createCompletionCommand } = await import('../../../src/cli/completion.js');
  const lines: string[] = [];
  const log = console.log;
  console.log = (text: string) => lines.push(text);
  const known = { usage: '', summary: 's', needsLogin: false, arguments: [0, 0] as const, run: async () => undefined };
  const commands = [{ ...known, name: 'objects', options: { where: { type: 'string' } as const } }];
  await createCompletionCommand(() => commands, ['json'])
    .run({} as never, {}, ['bash'])
    .finally(() => {
      console.log = log;
    });
  const ask = (words: string) =>
    execFileSync(
      'bash',
      [
        '-c',
        `${lines.join('\n')}\nCOMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _vigil; echo "\${COMPREPLY[@]}"`,
      ],
      { encoding: 'utf8' },
    ).trim();
  expect(ask('vigil ob')).toBe('objects');
  expect(ask('vigil objects --')).toBe('--where --json');
});
