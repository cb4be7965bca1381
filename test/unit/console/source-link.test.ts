/** The links with which apps set themselves up as senders of a source. */
import { expect, test } from '@jest/globals';
import { toSetupLink } from '../../../src/console/entities/source-link.js';

const ADDRESS = 'https://vigil.example/api/v1/in/phones';

test('contains the address and the key in the form of each app', () => {
  expect(toSetupLink('osmand', ADDRESS, 'k')).toBe(`${ADDRESS}/k`);
  expect(toSetupLink('telegraf', ADDRESS, 'k')).toBe(`${ADDRESS}/k`);
  const overland = new URL(toSetupLink('overland', ADDRESS, 'k'));
  expect(Object.fromEntries(overland.searchParams)).toEqual({ url: ADDRESS, token: 'k' });
  const owntracks = new URL(toSetupLink('owntracks', ADDRESS, 'k'));
  expect(owntracks.protocol).toBe('owntracks:');
  const settings = JSON.parse(atob(owntracks.searchParams.get('inline') ?? ''));
  expect(settings).toEqual({ _type: 'configuration', mode: 3, url: `${ADDRESS}/k`, auth: false });
});
