/** Devices that are set to a wrong address are told where packets go, and no answer lets them drop what they measured. */
import { describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';

const service = useService();
const JAVA = 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2';
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const ask = (method: string, path: string, headers: Record<string, string> = {}, text?: string) =>
  sendHttp(service.url, { method, path, headers, ...(text !== undefined && { text }) });

describe('a request with measurements is a 404 that says where packets go', () => {
  test.each<{ method?: string; path: string; headers?: Record<string, string>; text?: string }>([
    { path: '/?id=unit-5&lat=-37.8&lon=144.9&timestamp=1795500000000&speed=0.2&batt=88' },
    { path: '/?id=unit-5&lat=-37.8&lon=144.9', headers: { accept: JAVA } },
    { path: '/?id=unit-5&lat=-37.8&lon=144.9', headers: { accept: 'text/html' } },
    { path: '/?deviceid=7&location=48.1,11.5' },
    { path: '/?imei=356938035643809&latitude=48.1&longitude=11.5' },
    { path: '/?LAT=48.1&LNG=11.5' },
    { path: '/api/v1?id=unit-5&lat=-37.8&lon=144.9' },
    { path: '/api/v1/?temperature=21.5' },
    { method: 'POST', path: '/?id=unit-5&lat=-37.8&lon=144.9' },
    { path: '/gps?imei=356938035643809&lat=48.1&lon=11.5' },
    { method: 'POST', path: '/pub', headers: JSON_TYPE, text: '{"_type":"location","lat":48.1,"lon":11.5}' },
    { method: 'POST', path: '/gps/unit-5', headers: FORM, text: 'lat=48.1&lon=11.5' },
  ])('answers %j', async ({ method = 'GET', path, headers, text }) => {
    const { status, body } = await ask(method, path, headers, text);
    expect([status, body]).toEqual([
      404,
      {
        success: false,
        code: '404',
        message: 'Not Found',
        tags: ['error_not_found'],
        helper: { message: expect.stringContaining('POST /api/v1/objects/<id>/packets') },
      },
    ]);
  });
});

test.each(['/', '/?', '/?x=1', '/?_=1795500000000', '/api/v1', '/api/v1/?v=2'])(
  'answers GET %s with what the server is',
  async (path) => {
    const { status, body } = await ask('GET', path);
    expect([status, body]).toMatchObject([200, { success: true, name: 'Vigil' }]);
  },
);

test('answers a browser with the page of the console at each of its addresses', async () => {
  for (const path of ['/?object=car&at=48.1,11.5,7&search=van', '/?show=online&group=x&model=y&label=z']) {
    const { status, headers } = await ask('GET', path, { accept: 'text/html' });
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  }
});

test('answers 405 to a POST without measurements in the query', async () => {
  const { status, headers } = await ask('POST', '/', JSON_TYPE, '{"lat":48.1,"lon":11.5}');
  expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
});
