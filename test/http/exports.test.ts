/** Packets as files: every format has the content, the order and the permissions of the list. */
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import { type Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { useService } from '../support/fixture.js';

const service = useService();
const START = Date.UTC(2026, 0, 1);
const PACKETS = 12_345;
let objectId: string;
let token: string;
const path = (query: string, id = 'tr/ück'.replace('/', '-')): string => `objects/${id}/packets?${query}`;

interface Exported {
  readonly status: number;
  readonly text: string;
  readonly headers: Record<string, string>;
  readonly trailers: Record<string, string>;
}

function fetchExport(query: string, headers: Record<string, string> = {}): Promise<Exported> {
  return new Promise((resolve, reject) => {
    const url = new URL(`/api/v1/objects/${objectId}/packets${query}`, service.url);
    const req = request(url, { headers: { authorization: `Bearer ${token}`, ...headers } }, async (res) => {
      const parts: Buffer[] = [];
      for await (const part of res) parts.push(part as Buffer);
      const text = Buffer.concat(parts).toString();
      const { statusCode: status = 0, headers: given, trailers } = res;
      resolve({ status, text, headers: given as Exported['headers'], trailers: trailers as Exported['trailers'] });
    });
    req.once('error', reject).end();
  });
}

const linesOf = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

beforeAll(async () => {
  token = await service.tokenOf('admin', 'correct horse battery');
  objectId = (await service.admin('POST', 'objects', { id: 'tr-ück', name: 'Truck' })).body._id;
  const documents = Array.from({ length: PACKETS }, (_, nth) => ({
    _id: toPacketKey(new ObjectId().toHexString(), new ObjectId(objectId)),
    _ts: (START + nth) * 1_000,
    time: START + Math.floor(nth / 3) * 1_000,
    online: true,
    _oid: new ObjectId(objectId),
    id: 'tr-ück',
    _gid: new ObjectId(),
    lat: 48 + nth / 1e5,
    lon: 16 - nth / 1e5,
    ...(nth % 2 === 0 && { speed: nth / 10, height: 200 }),
    ...(nth === 7 && { text: '=1+1', nested: { a: [1, 'x,"y"'], b: null } }),
    ...(nth === 12_000 && { late: 'only here;=2+2' }),
  }));
  await service.client.db().collection<{ _id: Binary }>('packets').insertMany(documents);
});

describe('an export', () => {
  test('contains every packet in the order of lists, beyond the limit of a list', async () => {
    const { text, headers, trailers } = await fetchExport('?format=ndjson');
    const pages = [];
    for (let after = ''; ; ) {
      const { body } = await service.admin('GET', path(`limit=5000${after}`, objectId));
      pages.push(...body);
      if (body.length < 5_000) break;
      after = `&after=${body.at(-1)._id}`;
    }
    expect(pages).toHaveLength(PACKETS);
    expect(linesOf(text)).toEqual(pages);
    expect(headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(trailers).toEqual({ 'x-export': `complete; packets=${PACKETS}` });
  });

  test.each([
    '?from=1767225610000&to=2026-01-01T00:20',
    '?sortBy=-time&limit=6001&offset=17',
    '?where.speed=30,60&only=speed',
  ])('answers %s like a list', async (query) => {
    const { body } = await service.admin('GET', `objects/${objectId}/packets${query}`);
    expect(linesOf((await fetchExport(`${query}&format=ndjson`)).text)).toEqual(body);
  });

  test('is complete without packets', async () => {
    const empty = await fetchExport('?to=5&format=ndjson');
    expect([empty.status, empty.text]).toEqual([200, '']);
    expect((await fetchExport('?limit=0&format=csv')).text).toMatch(/^_id,_ts,time,[^\n]*\r\n$/);
    expect(JSON.parse((await fetchExport('?to=5&format=geojson')).text).features).toEqual([]);
    expect((await fetchExport('?to=5&format=gpx')).text).toContain('<trkseg>\n</trkseg>');
  });

  test.each([
    ['text/csv', 'text/csv; charset=utf-8; header=present'],
    ['application/x-ndjson, */*;q=0.1', 'application/x-ndjson; charset=utf-8'],
    ['application/jsonl', 'application/x-ndjson; charset=utf-8'],
    ['application/geo+json', 'application/geo+json; charset=utf-8'],
    ['application/gpx+xml', 'application/gpx+xml; charset=utf-8'],
    ['application/json, text/csv;q=0.5', 'application/json; charset=utf-8'],
    ['text/html, */*', 'application/json; charset=utf-8'],
  ])('is selected by Accept: %s', async (accept, type) => {
    const { status, headers } = await fetchExport('?limit=2', { accept });
    expect([status, headers['content-type']]).toEqual([200, type]);
  });

  test.each([
    ['format=xlsx', 'format: expected json, csv, ndjson, geojson, gpx, parquet'],
    ['format=csv&format=gpx', 'format: given more than once'],
    ['format=csv&meta=true', 'meta: cannot be combined with format'],
    ['format=csv&sortBy=speed', 'sortBy: an export is sorted by time or -time'],
    ['format=gpx&gap=soon', 'gap: expected a duration, such as "15 min", or milliseconds'],
    ['format=csv&limit=-1', 'limit: expected a whole number, 0 or more'],
    ['format=csv&after=0', 'after: expected the _id of the last entity read'],
  ])('refuses %s', async (query, message) => {
    const { status, body } = await service.admin('GET', path(query, objectId));
    expect([status, body.helper?.message]).toEqual([400, message]);
  });

  test('is named after the object, in any script', async () => {
    const { headers } = await fetchExport('?limit=1&format=csv');
    expect(headers['content-disposition']).toBe(`attachment; filename="tr-_ck.csv"; filename*=UTF-8''tr-%C3%BCck.csv`);
  });

  test('answers HEAD without a body', async () => {
    const { status, headers, text } = await service.admin('HEAD', path('format=csv', objectId));
    expect([status, headers['content-type'], text]).toEqual([200, 'text/csv; charset=utf-8; header=present', '']);
  });
});

describe('CSV', () => {
  test('has a column for each field, and one for fields that come later', async () => {
    const { text } = await fetchExport('?format=csv');
    const rows: Record<string, string>[] = parse(text, { columns: true });
    expect(rows).toHaveLength(PACKETS);
    expect(Object.keys(rows[0] as object)).toEqual(
      '_id _ts time online _oid id _gid lat lon speed height text nested _more'.split(' '),
    );
    expect(rows[7]).toMatchObject({
      time: '2026-01-01T00:00:02.000Z',
      online: 'true',
      _oid: objectId,
      id: 'tr-ück',
      speed: '',
      lat: '48.00007',
      text: "'=1+1",
      nested: '{"a":[1,"x,"y""],"b":null}'.replace('"y"', '\\"y\\"'),
    });
    expect(rows[12_000]?._more).toBe(`{"late":"only here;'=2+2"}`);
  });

  test('has the requested fields, also nested ones', async () => {
    const { text } = await fetchExport('?format=csv&only=nested.a,speed&offset=6&limit=2');
    const rows = parse(text, { columns: true }) as Record<string, string>[];
    expect(rows.map(({ _id, ...rest }) => rest)).toEqual([
      { 'nested.a': '', speed: '0.6' },
      { 'nested.a': '[1,"x,\\"y\\""]', speed: '' },
    ]);
  });
});

/** Sends one packet, and returns its cells in CSV. */
async function cellsOf(packet: object, query: string): Promise<Record<string, string>> {
  const id = `cells-${new ObjectId()}`;
  await service.admin('POST', 'objects', { id, name: 'Cells' });
  const sent = await service.admin('POST', `objects/${id}/packets`, packet);
  expect(sent.status).toBe(200);
  const { text } = await service.admin('GET', `objects/${id}/packets?format=csv&${query}`);
  return (parse(text, { columns: true, bom: true }) as Record<string, string>[])[0] as Record<string, string>;
}

test.each([
  ['-12.5', '-12.5'],
  ['-1.5e-3', '-1.5e-3'],
  ['+21.5', '+21.5'],
  ['-12,5', '-12,5'],
  ['-7;-8', '-7;-8'],
  ['-.5', '-.5'],
  ['-2+3+cmd|x', "'-2+3+cmd|x"],
  ['-7;=1+1', "-7;'=1+1"],
  ['+49 170 1', "'+49 170 1"],
  ['-1 or more', "'-1 or more"],
  ['-', "'-"],
  ['--1', "'--1"],
  ['-0x10', "'-0x10"],
  ['=1', "'=1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\uff0d1', "'\uff0d1"],
])('keeps numbers that were sent as text, and disarms formulas, in CSV: %s', async (sent, cell) => {
  expect((await cellsOf({ note: sent }, 'only=note')).note).toBe(cell);
});

test.each([
  ['8944110068765432109', '="8944110068765432109"', 'an ICCID'],
  [860_000_000_000_019, '="860000000000019"', 'an IMEI as a number'],
  ['0012', '="0012"', 'zeros in front'],
  ['12E45678', '="12E45678"', 'an exponent'],
  ['+491701234567', '="+491701234567"', 'a telephone number'],
  [-860_000_000_000_019, '="-860000000000019"', 'a negative number of fifteen digits'],
  [1_795_500_000_123, '1795500000123', 'no milliseconds'],
  ['12345', '12345', 'no short number'],
  ['0.5', '0.5', 'no decimal'],
  [0.1234567890123456, '0.1234567890123456', 'no fraction'],
  ['-12.5', '-12.5', 'no negative number'],
  ['=1', "'=1", 'no formula'],
])('writes identifiers of digits as text in CSV for spreadsheets: %s is %s (%s)', async (sent, cell, _) => {
  const { _ts, ...cells } = await cellsOf({ note: sent }, 'bom=true');
  expect([cells.note, _ts]).toEqual([cell, expect.stringMatching(/^="\d{16}"$/)]);
});

test.each([
  ['', '21.5,-0.25,12.5,"a;b","{""x"":1.5}",1e-7'],
  ['separator=comma&decimal=point', '21.5,-0.25,12.5,"a;b","{""x"":1.5}",1e-7'],
  ['separator=&decimal=', '21.5,-0.25,12.5,"a;b","{""x"":1.5}",1e-7'],
  ['separator=semicolon', '21.5;-0.25;12.5;"a;b";"{""x"":1.5}";1e-7'],
  ['separator=semicolon&decimal=comma', '21,5;-0,25;12.5;"a;b";"{""x"":1.5}";1e-7'],
  ['separator=tab&decimal=comma', '21,5\t-0,25\t12.5\t"a;b"\t"{""x"":1.5}"\t1e-7'],
  ['separator=semicolon&decimal=comma&bom=true', '21,5;-0,25;12.5;"a;b";"{""x"":1.5}";1e-7'],
])('separates cells and decimals of CSV as asked: %s', async (query, cells) => {
  const id = `cells-${new ObjectId()}`;
  await service.admin('POST', 'objects', { id, name: 'x' });
  const packet = { a: 21.5, b: -0.25, c: '12.5', d: 'a;b', e: { x: 1.5 }, f: 1e-7 };
  expect((await service.admin('POST', `objects/${id}/packets`, packet)).status).toBe(200);
  const path = `objects/${id}/packets?format=csv&only=a,b,c,d,e,f&${query}`;
  const [header = '', row = ''] = (await service.admin('GET', path)).text.split('\r\n');
  const separator = /_id(.)a/.exec(header)?.[1] ?? '';
  expect(row.slice(row.indexOf(separator) + 1)).toBe(cells);
});

test.each([
  ['separator=;', 'separator: expected comma, semicolon, tab'],
  ['separator=comma&decimal=comma', 'decimal: a comma needs separator=semicolon or separator=tab'],
  ['decimal=comma', 'decimal: a comma needs separator=semicolon or separator=tab'],
  ['decimal=constructor', 'decimal: expected point, comma'],
])('refuses CSV with %s', async (query, message) => {
  const { status, text } = await fetchExport(`?format=csv&${query}`);
  expect([status, JSON.parse(text).helper.message]).toEqual([400, message]);
});

test('begins CSV for spreadsheets with a byte order mark, and no other', async () => {
  for (const [query, begin] of [
    ['format=csv&bom=true', '\ufeff_id,'],
    ['format=csv', '_id,_'],
    ['format=csv&bom=false', '_id,_'],
    ['format=ndjson&bom=true', '{"_id'],
  ]) {
    expect((await fetchExport(`?limit=1&${query}`)).text.slice(0, 5)).toBe(begin);
  }
  expect((await fetchExport('?format=csv&bom=maybe')).status).toBe(400);
});

test('writes longitudes, courses and times in GPX within the bounds of its schema', async () => {
  const id = `bounds-${new ObjectId()}`;
  await service.admin('POST', 'objects', { id, name: 'Bounds' });
  await service.admin('POST', `objects/${id}/packets`, [
    { time: START, lat: -16.8, lon: 180, speed: -1, course: 360 },
    { time: START + 1, lat: 90, lon: -180, speed: 36, course: 359.5 },
    { time: START + 2, lat: 91, lon: 181 },
  ]);
  const { text } = await service.admin('GET', `objects/${id}/packets?format=gpx`);
  const points = text.match(/<trkpt.*<\/trkpt>/g)?.map((point) => point.replace(/<time>.*<\/time>/, ''));
  expect(points).toEqual([
    '<trkpt lat="-16.8" lon="-180"></trkpt>',
    '<trkpt lat="90" lon="-180"><extensions><gpxtpx:TrackPointExtension><gpxtpx:speed>10</gpxtpx:speed>' +
      '<gpxtpx:course>359.5</gpxtpx:course></gpxtpx:TrackPointExtension></extensions></trkpt>',
  ]);
});

test('writes a GeoJSON point for each packet, with the packet', async () => {
  const { text } = await fetchExport('?format=geojson&limit=2&only=speed');
  const [first] = (await service.admin('GET', path('limit=1', objectId))).body;
  expect(JSON.parse(text)).toMatchObject({ type: 'FeatureCollection', features: [{}, {}] });
  expect(JSON.parse(text).features[0]).toEqual({
    type: 'Feature',
    id: first._id,
    geometry: { type: 'Point', coordinates: [16, 48, 200] },
    properties: { _id: first._id, speed: 0 },
  });
});

test('writes a GPX segment for each interval without a gap', async () => {
  const { text } = await fetchExport(`?format=gpx&gap=999&limit=7`);
  expect(text.match(/<trkseg>/g)).toHaveLength(3);
  expect(text).toContain('<name>tr-ück</name>');
  expect(text).toContain(
    '<trkpt lat="48.00002" lon="15.99998"><ele>200</ele><time>2026-01-01T00:00:00.000Z</time>' +
      '<extensions><gpxtpx:TrackPointExtension><gpxtpx:speed>0.056</gpxtpx:speed></gpxtpx:TrackPointExtension></extensions></trkpt>',
  );
});

test('counts an unread export against its caller only until it is aborted', async () => {
  const url = new URL(`/api/v1/objects/${objectId}/packets?format=ndjson`, service.url);
  const open = () =>
    new Promise<() => void>((resolve, reject) => {
      const req = request(url, { headers: { authorization: `Bearer ${token}` } }, (res) => {
        res.on('error', () => undefined).pause();
        resolve(() => req.destroy());
      });
      req.once('error', reject).end();
    });
  for (let round = 0; round < 3; round++) {
    const cuts = await Promise.all(Array.from({ length: LIMITS.exportsPerCaller }, open));
    for (const cut of cuts) cut();
  }
  expect((await fetchExport('?format=ndjson&limit=1')).status).toBe(200);
});
