/** The geocoder: each kind as its documentation has it, on a server of the test; its failures; bounds; and what is logged. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import type { GeocoderKind } from '../../src/geocoder/adapters.js';
import { createPerson } from '../support/callers.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { eventually, until } from '../support/until.js';

const asked: URL[] = [];
let answer: (url: URL, res: ServerResponse) => void;
const server = createServer((req: IncomingMessage, res) => {
  const url = new URL(String(req.url), 'http://geocoder');
  asked.push(url);
  answer(url, res);
});
const send = (res: ServerResponse, body: unknown, status = 200): void => {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(typeof body === 'string' ? body : JSON.stringify(body));
};

const off = useService();
const endings: (() => unknown)[] = [];
const services = {} as Record<GeocoderKind | 'refused', TestService>;
let lat = 48;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/geo`;
  for (const kind of ['nominatim', 'photon', 'pelias'] as const) {
    const env = { GEOCODER_URL: url, GEOCODER_KIND: kind, GEOCODER_QUERY: 'api_key=secret-key' };
    services[kind] = await startSecond(off, endings, { env: { ...env, WEBHOOK_NETWORKS: '127.0.0.1' } });
  }
  services.refused = await startSecond(off, endings, { env: { GEOCODER_URL: url, GEOCODER_KIND: 'photon' } });
});
beforeEach(() => {
  asked.length = 0;
  // Answers are cached: every test asks for a place of its own.
  lat += 0.1;
});
afterAll(async () => {
  for (const end of endings.reverse()) await end();
  server.closeAllConnections();
  server.close();
});

const reverse = (of: TestService, more = '') =>
  of.admin('GET', `geocoder/reverse?lat=${lat.toFixed(4)}&lon=11.5${more}`);
const search = (of: TestService, text: string, more = '') =>
  of.admin('GET', `geocoder/search?text=${encodeURIComponent(text)}${more}`);

const NOMINATIM = {
  place_id: 1,
  lat: '48.26',
  lon: '11.434',
  display_name: 'Münchner Straße 1, 85221 Dachau, Deutschland',
  address: { road: 'Münchner Straße' },
};
const feature = (properties: object, coordinates: unknown = [11.434, 48.26]) => ({
  type: 'Feature',
  geometry: { type: 'Point', coordinates },
  properties,
});
const collection = (...features: object[]) => ({ type: 'FeatureCollection', features });
const HOUSE = feature({
  type: 'house',
  street: 'Münchner Straße',
  housenumber: '1',
  postcode: '85221',
  city: 'Dachau',
  country: 'Deutschland',
});
const STREET = feature({ type: 'street', name: 'Belvedere Buildings', postcode: 'SE1 0DQ', city: 'London' });
const LABEL = feature({ label: 'Münchner Straße 1, Dachau, Deutschland' });

const KINDS: readonly [GeocoderKind, string, object, object, string][] = [
  ['nominatim', '/geo/reverse?lat=LAT&lon=11.5&format=jsonv2&accept-language=de', NOMINATIM, [NOMINATIM], 'q'],
  ['photon', '/geo/reverse?lat=LAT&lon=11.5&limit=1&lang=de', collection(HOUSE), collection(HOUSE, STREET), 'q'],
  [
    'pelias',
    '/geo/v1/reverse?point.lat=LAT&point.lon=11.5&size=1&lang=de',
    collection(LABEL),
    collection(LABEL),
    'text',
  ],
];

describe.each(KINDS)('%s', (kind, path, one, several, name) => {
  test('returns the address of a place, in the language, with what the operator adds', async () => {
    answer = (_url, res) => send(res, one);
    const { body } = await reverse(services[kind], '&lang=de');
    expect(body).toEqual({
      address: expect.stringMatching(/^Münchner Straße 1, .*Dachau.*Deutschland$/),
      success: true,
    });
    const wanted = new URL(path.replace('LAT', String(Number(lat.toFixed(4)))), 'http://geocoder');
    wanted.search = `?api_key=secret-key&${wanted.search.slice(1)}`;
    expect(asked.map(String)).toEqual([String(wanted)]);
  });

  test('finds the places that an address names', async () => {
    answer = (_url, res) => send(res, several);
    const { body } = await search(services[kind], `Münchner Straße 1 & more of ${kind}`, '&lang=de');
    expect(body.places[0]).toEqual({ address: expect.stringContaining('Dachau'), lat: 48.26, lon: 11.434 });
    expect(asked[0]?.searchParams.get(name)).toBe(`Münchner Straße 1 & more of ${kind}`);
  });

  test('has no address where the geocoder has none', async () => {
    answer = (_url, res) => send(res, kind === 'nominatim' ? { error: 'Unable to geocode' } : collection());
    expect((await reverse(services[kind])).body).toEqual({ address: null, success: true });
  });

  test.each<[about: string, answer: (res: ServerResponse) => void]>([
    ['answers 500', (res) => send(res, { message: 'down' }, 500)],
    ['answers 429', (res) => send(res, 'slow down', 429)],
    ['answers with a page', (res) => send(res, '<html>')],
    ['answers with something else', (res) => send(res, '7')],
    ['redirects', (res) => void res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['sends more than anybody reads', (res) => send(res, `"${'x'.repeat(2 * LIMITS.geocoderAnswerBytes)}"`)],
    ['closes the connection', (res) => void res.destroy()],
  ])('is a 503 if it %s, and asks again', async (_about, fail) => {
    answer = (_url, res) => fail(res);
    expect(await reverse(services[kind])).toMatchObject({
      status: 503,
      body: { helper: { message: 'the geocoder did not answer as expected' } },
    });
    answer = (_url, res) => send(res, one);
    expect((await reverse(services[kind])).body.address).toContain('Dachau');
  });
});

test('joins the parts of an address that Photon names', async () => {
  answer = (_url, res) => send(res, collection(STREET, feature({ name: 'Somewhere' }, 'nowhere'), feature({})));
  const { body } = await search(services.photon, 'Belvedere');
  expect(body.places).toEqual([{ address: 'Belvedere Buildings, SE1 0DQ London', lat: 48.26, lon: 11.434 }]);
});

test('asks Photon for no language that its index may not have', async () => {
  answer = (_url, res) => send(res, collection(HOUSE));
  await reverse(services.photon, '&lang=pt');
  expect(asked[0]?.searchParams.has('lang')).toBe(false);
});

test('asks once for a place that several people ask for, and for those ten metres away', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  answer = (_url, res) => void held.then(() => send(res, NOMINATIM));
  const first = reverse(services.nominatim);
  const second = reverse(services.nominatim);
  release();
  expect((await first).body).toEqual((await second).body);
  await services.nominatim.admin('GET', `geocoder/reverse?lat=${lat.toFixed(4)}1&lon=11.50001`);
  expect(asked).toHaveLength(1);
});

test('asks a bounded number of questions at once, and none beyond', async () => {
  const held: ServerResponse[] = [];
  answer = (_url, res) => void held.push(res);
  const people = await Promise.all(
    Array.from({ length: Math.ceil((LIMITS.geocoderRequests + 1) / LIMITS.geocoderRequestsPerCaller) }, () =>
      createPerson(off, { role: ADMINISTRATOR_ROLE_ID }),
    ),
  );
  const ask = (index: number) => {
    const { token } = people[Math.floor(index / LIMITS.geocoderRequestsPerCaller)] as (typeof people)[number];
    return services.pelias.as(token)('GET', `geocoder/search?text=Street%20${index}`);
  };
  const running = Array.from({ length: LIMITS.geocoderRequests }, (_, index) => ask(index));
  await until(() => held.length === LIMITS.geocoderRequests, 'as many questions as permitted');
  expect(await ask(LIMITS.geocoderRequests)).toMatchObject({
    status: 503,
    body: { helper: { message: 'too many questions to the geocoder at once' } },
  });
  for (const res of held) send(res, collection(LABEL));
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual(running.map(() => 200));
  expect(asked).toHaveLength(LIMITS.geocoderRequests);
});

test('leaves others room beside a caller who asks many questions at once', async () => {
  const held: ServerResponse[] = [];
  answer = (_url, res) => void held.push(res);
  const { token } = await createPerson(off, { role: ADMINISTRATOR_ROLE_ID });
  const ask = (index: number) => services.pelias.as(token)('GET', `geocoder/search?text=Lane%20${index}`);
  const running = Array.from({ length: LIMITS.geocoderRequestsPerCaller }, (_, index) => ask(index));
  await until(() => held.length === LIMITS.geocoderRequestsPerCaller, 'as many questions as one caller may ask');
  expect((await ask(LIMITS.geocoderRequestsPerCaller)).status).toBe(429);
  const other = search(services.pelias, 'Lane of another');
  await until(() => held.length === LIMITS.geocoderRequestsPerCaller + 1, 'the question of another');
  for (const res of held) send(res, collection(LABEL));
  expect((await Promise.all([other, ...running])).map(({ status }) => status)).toEqual([
    200,
    ...running.map(() => 200),
  ]);
});

test('waits no longer than its bound', async () => {
  const usualMs = LIMITS.geocoderAnswerMs;
  Object.assign(LIMITS, { geocoderAnswerMs: 50 });
  try {
    answer = () => undefined;
    expect((await reverse(services.pelias)).status).toBe(503);
  } finally {
    Object.assign(LIMITS, { geocoderAnswerMs: usualMs });
  }
});

test('remembers a 404 for a short while only, and an empty answer for longer', async () => {
  answer = (_url, res) => send(res, 'no such page', 404);
  expect((await reverse(services.photon)).body.address).toBeNull();
  answer = (_url, res) => send(res, collection(HOUSE));
  expect((await reverse(services.photon)).body.address).toBeNull();
  expect(asked).toHaveLength(1);
  const usualMs = LIMITS.geocoderNotFoundCachedMs;
  Object.assign(LIMITS, { geocoderNotFoundCachedMs: 1 });
  try {
    answer = (url, res) =>
      url.pathname.endsWith('/reverse') ? send(res, 'bad gateway', 404) : send(res, collection());
    lat += 0.01;
    expect((await reverse(services.photon)).body.address).toBeNull();
    expect((await search(services.photon, 'Nowhere at all')).body.places).toEqual([]);
    answer = (_url, res) => send(res, collection(HOUSE));
    await eventually(async () => expect((await reverse(services.photon)).body.address).toContain('Dachau'));
    expect((await search(services.photon, 'Nowhere at all')).body.places).toEqual([]);
  } finally {
    Object.assign(LIMITS, { geocoderNotFoundCachedMs: usualMs });
  }
});

test('refuses a caller who asks too often, and nobody else', async () => {
  answer = (_url, res) => send(res, NOMINATIM);
  const { token } = await createPerson(off, { role: ADMINISTRATOR_ROLE_ID });
  const call = services.nominatim.as(token);
  const ask = () => call('GET', `geocoder/reverse?lat=${lat.toFixed(4)}&lon=11.5`);
  for (let count = 0; count < LIMITS.geocoderPerCaller; count++) expect((await ask()).status).toBe(200);
  expect((await ask()).status).toBe(429);
  expect((await reverse(services.nominatim)).status).toBe(200);
});

test('asks nobody at an address that requests may not be sent to', async () => {
  expect((await reverse(services.refused)).status).toBe(503);
  expect(asked).toEqual([]);
});

test('says that there is none, where the operator has set none up', async () => {
  expect(await reverse(off)).toMatchObject({
    status: 404,
    body: { helper: { message: 'no geocoder is set up: the operator names one in GEOCODER_URL' } },
  });
  expect((await search(off, 'Dachau')).status).toBe(404);
});

test.each(['lat=48', 'lat=91&lon=11', 'lat=x&lon=11', 'lat=0&lon=0', 'lat=48&lon=11&lang=german', 'lat=1&lat=2&lon=3'])(
  'refuses the place %s',
  async (query) => {
    expect((await services.photon.admin('GET', `geocoder/reverse?${query}`)).status).toBe(400);
    expect(asked).toEqual([]);
  },
);

test('refuses a text that is empty or too long', async () => {
  expect((await search(services.photon, ' ')).status).toBe(400);
  expect((await search(services.photon, 'x'.repeat(LIMITS.geocoderTextCharacters + 1))).status).toBe(400);
});

test('logs no place, text, address or key', async () => {
  const reverseOfSecret = () => services.nominatim.admin('GET', 'geocoder/reverse?lat=47.9876&lon=12.3457');
  answer = (_url, res) => send(res, { message: 'down' }, 500);
  await reverseOfSecret();
  await search(services.nominatim, 'Secret Street 7');
  answer = (_url, res) => send(res, [NOMINATIM]);
  await reverseOfSecret();
  await search(services.nominatim, 'Secret Street 8');
  const lines = services.nominatim.logLines.join('');
  expect(lines).toContain('the geocoder did not answer as expected');
  // No time of a line and no duration in it has these digits: times have three decimals.
  expect(lines.replaceAll(/"ms":[\d.]+/g, '')).not.toMatch(/Secret|secret-key|Dachau|47\.9876|12\.3457/);
});
