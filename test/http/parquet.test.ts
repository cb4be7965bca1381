/** Packets as Apache Parquet: DuckDB reads types, values and positions of every packet, and refuses what is incomplete. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { useService } from '../support/fixture.js';

const service = useService();
const START = Date.UTC(2026, 0, 1);
let folder: string;
let token: string;
let duckdb: DuckDBConnection;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-parquet-'));
  token = await service.tokenOf('admin', 'correct horse battery');
  duckdb = await (await DuckDBInstance.create()).connect();
});
afterAll(async () => {
  duckdb.closeSync();
  await rm(folder, { recursive: true });
});

const fetchFile = (id: string, query = ''): Promise<Response> =>
  fetch(new URL(`/api/v1/objects/${id}/packets?format=parquet${query}`, service.url), {
    headers: { authorization: `Bearer ${token}` },
  });

/** Saves the export of an object, and returns the path of the file. */
async function saveFile(id: string, query?: string): Promise<string> {
  const response = await fetchFile(id, query);
  expect(response.status).toBe(200);
  const path = join(folder, `${new ObjectId()}.parquet`);
  await writeFile(path, Buffer.from(await response.arrayBuffer()));
  return path;
}

async function ask(sql: string): Promise<Record<string, unknown>[]> {
  return (await duckdb.runAndReadAll(sql)).getRowObjectsJson();
}

async function typesIn(path: string): Promise<Record<string, unknown>> {
  const rows = await ask(`describe select * from '${path}'`);
  return Object.fromEntries(rows.map(({ column_name, column_type }) => [column_name, column_type]));
}

async function createObject(fields: object = {}): Promise<{ id: string; _id: string }> {
  const id = `parquet-${new ObjectId()}`;
  const { body } = await service.admin('POST', 'objects', { id, name: 'Parquet', ...fields });
  return { id, _id: body._id };
}

async function send(id: string, packets: readonly object[]): Promise<void> {
  const { body } = await service.admin('POST', `objects/${id}/packets`, packets);
  expect(body).toEqual({ success: true, count: packets.length });
}

/** Stores packets directly, one per second. */
async function store(_oid: string, count: number, fieldsOf: (nth: number) => object): Promise<void> {
  const oid = new ObjectId(_oid);
  const documents = Array.from({ length: count }, (_, nth) => ({
    _id: toPacketKey(new ObjectId().toHexString(), oid),
    _ts: (START + nth) * 1_000 + 1,
    time: START + nth * 1_000,
    online: true,
    _oid: oid,
    id: 'x',
    _gid: new ObjectId(),
    ...fieldsOf(nth),
  }));
  await service.client.db().collection<{ _id: Binary }>('packets').insertMany(documents);
}

test('is a file of its own media type and name', async () => {
  const { id } = await createObject();
  for (const [query, accept] of [
    ['format=parquet', '*/*'],
    ['limit=1', 'application/vnd.apache.parquet'],
  ] as const) {
    const { status, headers } = await fetch(new URL(`/api/v1/objects/${id}/packets?${query}`, service.url), {
      headers: { authorization: `Bearer ${token}`, accept },
      method: 'HEAD',
    });
    expect([status, headers.get('content-type')]).toEqual([200, 'application/vnd.apache.parquet']);
    expect(headers.get('content-disposition')).toContain(`filename="${id}.parquet"`);
  }
});

describe('a file', () => {
  test('has a column of the fitting type for each field, and each value', async () => {
    const { id, _id } = await createObject();
    const packets = [
      { time: START, speed: 12.5, isOn: true, mode: 'éco 🚗', engine: { rpm: 800, 'oil.temp': [1, null] }, mixed: 1 },
      { time: START + 1, speed: -0.1, isOn: false, mode: '', mixed: 'two', list: ['a', 1e-9] },
      { time: START + 1_000, speed: null, mixed: true, nothing: null, lat: 48.2, lon: 16.37, height: 171 },
      { time: START + 2_000, position: { lat: -33.9, lon: 151.2 } },
    ];
    await send(id, packets);
    const path = await saveFile(id);
    expect(await typesIn(path)).toEqual({
      _id: 'VARCHAR',
      _ts: 'TIMESTAMP WITH TIME ZONE',
      time: 'TIMESTAMP WITH TIME ZONE',
      online: 'BOOLEAN',
      _oid: 'VARCHAR',
      id: 'VARCHAR',
      _gid: 'VARCHAR',
      speed: 'DOUBLE',
      isOn: 'BOOLEAN',
      mode: 'VARCHAR',
      engine: 'JSON',
      mixed: 'JSON',
      list: 'JSON',
      nothing: 'JSON',
      lat: 'DOUBLE',
      lon: 'DOUBLE',
      height: 'DOUBLE',
      position: 'JSON',
      geometry: "GEOMETRY('OGC:CRS84')",
      _more: 'JSON',
    });
    const { body: listed } = await service.admin('GET', `objects/${id}/packets`);
    const rows = await ask(
      `select * exclude (geometry, _ts, _more, time), epoch_ms(time) as time, epoch_us(_ts) as _ts from '${path}'`,
    );
    expect(rows).toHaveLength(listed.length);
    for (const [nth, row] of rows.entries()) {
      const found = Object.fromEntries(
        Object.entries(row)
          .filter(([, value]) => value !== null)
          .map(([name, value]) => {
            if (name === 'time' || name === '_ts') return [name, Number(value)];
            return [name, ['engine', 'mixed', 'list', 'position'].includes(name) ? JSON.parse(String(value)) : value];
          }),
      );
      const sent = Object.entries(listed[nth]).filter(([, value]) => value !== null);
      expect(found).toEqual(Object.fromEntries(sent));
    }
    expect(rows.every((row) => row._oid === _id)).toBe(true);
  });

  test('keeps what no column holds: later fields, values of another type, and a field named like a column of its own', async () => {
    const { _id } = await createObject();
    await store(_id, LIMITS.exportBatchPackets + 3, (nth) => ({
      speed: nth === 2_001 ? 'broken "sensor"' : nth,
      ...(nth === 0 && { geometry: 'square' }),
      ...(nth === 2_002 && { late: { a: [1] }, speed: null }),
    }));
    const path = await saveFile(_id);
    const rows = await ask(`select epoch_ms(time) as time, speed, _more from '${path}' where _more is not null`);
    expect(rows.map(({ time, speed, _more }) => [Number(time) - START, speed, JSON.parse(String(_more))])).toEqual([
      [0, 0, { geometry: 'square' }],
      [2_001_000, null, { speed: 'broken "sensor"' }],
      [2_002_000, null, { late: { a: [1] } }],
    ]);
  });

  test('has the types that the model declares', async () => {
    const data = {
      children: [
        { type: 'argument', id: 'level', dataType: 'number' },
        { type: 'argument', id: 'door', dataType: 'boolean' },
        { type: 'argument', id: 'note', dataType: 'string' },
        { type: 'argument', id: 'tags', dataType: 'string[]' },
      ],
    };
    const { body: model } = await service.admin('POST', 'models', { name: 'Tank', data });
    const { id } = await createObject({ model: model._id });
    await send(id, [{ time: START, tags: ['a'] }]);
    const path = await saveFile(id);
    expect(await typesIn(path)).toMatchObject({ level: 'DOUBLE', door: 'BOOLEAN', note: 'VARCHAR', tags: 'JSON' });
    expect(await ask(`select level, door, note, tags from '${path}'`)).toEqual([
      { level: null, door: null, note: null, tags: '["a"]' },
    ]);
  });

  test('has the requested fields, also nested ones, and positions if they are requested', async () => {
    const { id } = await createObject();
    await send(id, [{ time: START, engine: { rpm: 800 }, speed: 1, lat: 1, lon: 2 }]);
    expect(await typesIn(await saveFile(id, '&only=engine.rpm,time'))).toEqual({
      _id: 'VARCHAR',
      'engine.rpm': 'DOUBLE',
      time: 'TIMESTAMP WITH TIME ZONE',
      _more: 'JSON',
    });
    const path = await saveFile(id, '&only=geometry');
    expect(Object.keys(await typesIn(path))).toEqual(['_id', 'geometry', '_more']);
    expect(await ask(`select count(geometry)::int as points from '${path}'`)).toEqual([{ points: 1 }]);
  });

  test('has the positions as GeoParquet', async () => {
    const { id } = await createObject();
    await send(id, [
      { time: START, lat: 48.2, lon: 16.37, height: 171 },
      { time: START + 1, location: { type: 'Point', coordinates: [-70.5, -33] } },
      { time: START + 2, lat: 0, lon: 0 },
      { time: START + 3, speed: 1 },
    ]);
    const path = await saveFile(id);
    const points = await ask(`select hex(st_aswkb(geometry)) as wkb from '${path}'`);
    const read = (wkb: unknown): unknown => {
      if (wkb === null) return null;
      const bytes = Buffer.from(String(wkb), 'hex');
      return [
        bytes.readUInt32LE(1),
        ...Array.from({ length: (bytes.length - 5) / 8 }, (_, i) => bytes.readDoubleLE(5 + 8 * i)),
      ];
    };
    expect(points.map(({ wkb }) => read(wkb))).toEqual([[1_001, 16.37, 48.2, 171], [1, -70.5, -33], null, null]);
    const [meta] = await ask(
      `select decode(value) as geo from parquet_kv_metadata('${path}') where decode(key) = 'geo'`,
    );
    expect(JSON.parse(String(meta?.geo))).toEqual({
      version: '1.1.0',
      primary_column: 'geometry',
      columns: { geometry: { encoding: 'WKB', geometry_types: ['Point', 'Point Z'] } },
    });
  });

  test('has row groups in the order of the list, of many packets', async () => {
    const { _id } = await createObject();
    const count = 2 * LIMITS.exportGroupPackets + 345;
    await store(_id, count, (nth) => ({ nth, ...(nth % 3 === 0 && { third: nth / 7 }) }));
    const path = await saveFile(_id);
    const [facts] = await ask(
      `select num_rows::int as rows, num_row_groups::int as groups from parquet_file_metadata('${path}')`,
    );
    expect(facts).toEqual({ rows: count, groups: 3 });
    const rows = await ask(`select nth, third from '${path}'`);
    expect(rows.map(({ nth }) => nth)).toEqual(Array.from({ length: count }, (_, nth) => nth));
    expect(rows.filter(({ third }) => third !== null)).toEqual(
      Array.from({ length: Math.ceil(count / 3) }, (_, index) => ({ nth: 3 * index, third: (3 * index) / 7 })),
    );
    const reversed = await ask(`select nth from '${await saveFile(_id, '&sortBy=-time&limit=3&offset=1')}'`);
    expect(reversed.map(({ nth }) => nth)).toEqual([count - 2, count - 3, count - 4]);
  });

  test('has row groups of bounded bytes, of long packets', async () => {
    const { _id } = await createObject();
    await store(_id, 40, (nth) => ({
      text: String.fromCharCode(97 + (nth % 26)).repeat(LIMITS.exportGroupBytes / 10),
    }));
    const path = await saveFile(_id);
    expect(await ask(`select num_row_groups::int as groups from parquet_file_metadata('${path}')`)).toEqual([
      { groups: 4 },
    ]);
    expect(await ask(`select sum(length(text))::int as characters from '${path}'`)).toEqual([
      { characters: 40 * Math.floor(LIMITS.exportGroupBytes / 10) },
    ]);
  });

  test('ends incomplete where its columns take too much memory', async () => {
    const { _id } = await createObject();
    await store(_id, 20, (nth) => ({ text: 'x'.repeat(LIMITS.exportGroupBytes / 5), nth }));
    const before = LIMITS.exportChunks;
    Object.assign(LIMITS, { exportChunks: 30 });
    try {
      const text = await (await fetchFile(_id)).text();
      expect(text.slice(-200)).toMatch(/\n#incomplete: 413: .*too many columns for so many packets in one file/);
    } finally {
      Object.assign(LIMITS, { exportChunks: before });
    }
  });

  test('is complete without packets', async () => {
    const { id } = await createObject();
    const path = await saveFile(id);
    expect(await ask(`select * from '${path}'`)).toEqual([]);
    expect(await typesIn(path)).toMatchObject({ time: 'TIMESTAMP WITH TIME ZONE', _more: 'JSON' });
  });
});
