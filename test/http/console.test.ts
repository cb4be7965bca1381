/** The console as browsers receive it, and what programs receive at the same addresses. */
import { describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, service.url), { headers, redirect: 'manual' });

const page = async (path = '/'): Promise<string> => (await get(path, { Accept: BROWSER })).text();
const filesOf = (html: string): string[] =>
  [...html.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)].map(([, path]) => path as string);

describe('a page', () => {
  test.each(['/', '/objects/truck-7/live', '/account/tokens', '/log', '/s'])(
    'answers %s to a browser in HTML',
    async (path) => {
      const answer = await get(path, { Accept: BROWSER });
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(answer.headers.get('vary')).toContain('Accept');
      expect(await answer.text()).toContain('<div id="console">');
    },
  );

  test.each([undefined, '*/*', 'application/json', 'application/json, text/plain, */*'])(
    'answers / to a program that accepts %s in JSON',
    async (accept) => {
      const answer = await get('/', accept === undefined ? {} : { Accept: accept });
      expect(await answer.json()).toMatchObject({ success: true, name: 'Vigil' });
      expect(answer.headers.get('vary')).toContain('Accept');
    },
  );

  test('answers 404 for an unknown address, also to a browser', async () => {
    for (const path of ['/nowhere', '/objects/truck-7/nothing', '/console/none.js', '/console/../package.json'])
      expect([path, (await get(path, { Accept: BROWSER })).status]).toEqual([
        path,
        path.startsWith('/objects') ? 401 : 404,
      ]);
  });

  test('answers an unknown address to a browser with a page that says so, and to a program in JSON', async () => {
    const answer = await get('/nowhere', { Accept: BROWSER });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(answer.headers.get('vary')).toContain('Accept');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await answer.text()).toContain('<div id="console">');
    for (const [path, accept] of [
      ['/nowhere', '*/*'],
      ['/api/v1x/nothing', BROWSER],
      ['/console/none.js', BROWSER],
    ] as const)
      expect(await (await get(path, { Accept: accept })).json()).toMatchObject({ success: false, code: '404' });
    const posted = await fetch(`${service.url}/nowhere`, { method: 'POST', headers: { Accept: BROWSER } });
    expect(posted.status).toBe(404);
    expect(await posted.json()).toMatchObject({ code: '404' });
  });

  test.each([
    ['/', /^home/],
    ['/objects/truck-7', /^live-tab/],
    ['/objects/truck-7/live', /^live-tab/],
    ['/objects/truck-7/history', /^history-tab/],
    ['/s', /^shared-page/],
  ])('names the files that %s begins with, as those that come after its script', async (path, form) => {
    const [first = '', later = ''] = (await page(path)).split('</script>');
    expect(filesOf(first).some((file) => /\/main-[^/]+\.js$/.test(file))).toBe(true);
    const files = filesOf(later).map((file) => file.split('/').at(-1) ?? '');
    expect(files.filter((file) => form.test(file))).toHaveLength(1);
    expect(new Set(files).size).toBe(files.length);
    for (const file of files) expect([file, (await get(`/console/${file}`)).status]).toEqual([file, 200]);
    const others = (await page('/log')).split('</script>')[1] ?? '';
    expect([filesOf(others), others]).toEqual([[], expect.not.stringContaining('{{')]);
  });

  test('leaves the command path without the prefix to the API', async () => {
    const { body } = await service.admin('POST', 'objects', { id: 'live', name: 'Live' });
    expect((await service.admin('POST', `/objects/${body._id}/commands/live`, {})).status).toBe(200);
  });

  test('tells no other site the address of a share link', async () => {
    expect((await get('/s', { Accept: BROWSER })).headers.get('referrer-policy')).toBe('no-referrer');
  });

  test('permits only its own files', async () => {
    const policy = (await get('/', { Accept: BROWSER })).headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(await page()).not.toMatch(/<script>|<style|\sstyle=|\son\w+="/);
  });
});

describe('its files', () => {
  test('exist, never change, and are compressed on request', async () => {
    const files = filesOf(await page());
    expect(files.length).toBeGreaterThanOrEqual(4);
    for (const path of files) {
      const plain = await get(path, { 'Accept-Encoding': 'identity' });
      expect([path, plain.status]).toEqual([path, 200]);
      expect(plain.headers.get('cache-control')).toContain('immutable');
      const text = await plain.text();
      for (const coding of ['br', 'gzip']) {
        const coded = await get(path, { 'Accept-Encoding': coding });
        expect([path, coded.headers.get('content-encoding'), await coded.text()]).toEqual([path, coding, text]);
      }
    }
  });

  test('are answered to HEAD without a body', async () => {
    const [path = ''] = filesOf(await page());
    const answer = await fetch(new URL(path, service.url), { method: 'HEAD' });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    expect(Number(answer.headers.get('content-length'))).toBeGreaterThan(0);
  });
});
