/** What of packets and objects leaves through a share link. */
import { describe, expect, test } from '@jest/globals';
import { parseLinkRequest, toShownObject, toShownPacket, toShownUpdate } from '../../../src/core/link.js';

const OWN = { _id: 'a', _ts: 1, time: 2, online: true, _oid: 'o', id: 'van', _gid: 'g' };

describe('A packet', () => {
  test.each([
    ['all parameters', null, { speed: 1, a: { b: 2 } }, { speed: 1, a: { b: 2 } }],
    ['only the named ones', ['speed'], { speed: 1, fuel: 2 }, { speed: 1 }],
    ['members', ['a.b'], { a: { b: 2, c: 3 } }, { a: { b: 2 } }],
    ['a name with a dot', ['in1.voltage'], { 'in1.voltage': 12, in1: { amps: 1 } }, { 'in1.voltage': 12 }],
    ['null as it is', ['speed'], { speed: null, fuel: 1 }, { speed: null }],
    ['no member of a value that has none', ['speed.toString', 'speed.length'], { speed: 'fast' }, {}],
    ['nothing inherited', ['valueOf', 'hasOwnProperty'], { speed: 1 }, {}],
    ['no bookkeeping, even by name', ['id', '_id', '_oid', '_gid'], { speed: 1 }, {}],
    ['nothing', [], { speed: 1 }, {}],
  ])('shows %s', (_, fields, parameters, shown) => {
    expect(toShownPacket({ ...OWN, ...parameters }, fields)).toEqual({ ...shown, time: 2, online: true });
  });

  test('is not changed by being shown', () => {
    const packet = { ...OWN, a: { b: { c: 1, d: 2 } } };
    toShownPacket(packet, ['a.b.c']);
    expect(packet.a).toEqual({ b: { c: 1, d: 2 } });
  });
});

test('shows name and status of an object, unless fields are named', () => {
  const object = { name: 'Van', status: 'x', id: 'van', owner: 'u', config: { plate: 'P', driver: 'D' } };
  expect(toShownObject(object, null)).toEqual({ name: 'Van', status: 'x' });
  expect(toShownObject(object, ['config.plate', 'speed'])).toEqual({ config: { plate: 'P' } });
});

describe('The login of a device', () => {
  const auth = { username: 'truck', password: 'hmac-sha256:x' };

  test.each([
    ['a link to all of config', ['config']],
    ['a link that names it', ['config.auth']],
    ['a link that names its password, and what is beside it', ['config.auth.password', 'config']],
  ])('leaves neither an object nor a change through %s', (_, fields) => {
    const shown = [
      toShownObject({ config: { plate: 'P', auth } }, fields),
      toShownUpdate({ before: { config: { auth: {} } }, after: { config: { plate: 'Q', auth } } }, fields),
    ];
    expect(JSON.stringify(shown)).not.toMatch(/truck|hmac/);
  });

  test('is not told as a change', () => {
    expect(toShownUpdate({ before: { config: { auth: {} } }, after: { config: { auth } } }, ['config'])).toBeNull();
  });

  test.each(['config.auth', 'config.auth.username', 'config.auth.password'])('is not shared as %s', (path) => {
    expect(() => parseLinkRequest({ name: 'x', fields: ['name', path] })).toThrow(`fields: ${path} cannot be shared`);
  });
});

test('tells a change only if what is shown has changed', () => {
  const before = { config: { plate: 'P', driver: 'D' } };
  const fields = ['config.plate'];
  expect(toShownUpdate({ before, after: { config: { plate: 'P', driver: 'E' } } }, fields)).toBeNull();
  expect(toShownUpdate({ before, after: { config: { plate: 'Q', driver: 'D' } } }, fields)).toEqual({
    before: { config: { plate: 'P' } },
    after: { config: { plate: 'Q' } },
  });
  expect(toShownUpdate({ before: {}, after: { name: 'new' } }, null)).toEqual({ before: {}, after: { name: 'new' } });
  expect(toShownUpdate({ before: { description: 'a' }, after: { description: 'b' } }, null)).toBeNull();
});
