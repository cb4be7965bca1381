/** The address and the scheme of a client, compared with those that Express computes. */
import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import express from 'express';
import { createClientFacts } from '../../../src/platform/http/client-ip.js';
import { fc, runsOf } from '../../support/runs.js';

const ADDRESSES = ['127.0.0.1', '::1', '::ffff:10.1.2.3', '10.1.2.3', '192.0.2.7', '2001:db8::1'];
const trusted = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.subarray(['loopback', 'uniquelocal', '10.0.0.0/8', '192.0.2.7', '2001:db8::/32']),
);
const request = fc.record({
  remoteAddress: fc.constantFrom(...ADDRESSES),
  encrypted: fc.boolean(),
  forwardedFor: fc.option(
    fc
      .array(fc.constantFrom(...ADDRESSES, 'unknown', '', '10.1.2.3:80'), { maxLength: 4 })
      .map((list) => list.join(', ')),
    { nil: undefined },
  ),
  forwardedProto: fc.constantFrom(undefined, '', 'http', 'https', ' https , http', 'https,http'),
});

test('finds the same address and scheme as Express', () => {
  fc.assert(
    fc.property(trusted, request, (trustProxy, { remoteAddress, encrypted, forwardedFor, forwardedProto }) => {
      const app = express().set('trust proxy', trustProxy);
      const headers = {
        ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }),
        ...(forwardedProto !== undefined && { 'x-forwarded-proto': forwardedProto }),
      };
      const socket = { remoteAddress, encrypted };
      const req = Object.create(app.request, {
        app: { value: app },
        headers: { value: headers },
        socket: { value: socket },
      });
      const { addressOf, schemeOf } = createClientFacts(trustProxy);
      expect(addressOf(req as IncomingMessage)).toBe(req.ip);
      expect(schemeOf(req as IncomingMessage)).toBe(req.protocol);
    }),
    { numRuns: runsOf(1_000) },
  );
});

test('reports the scheme of a WebSocket as that of its handshake', () => {
  const { schemeOf } = createClientFacts(1);
  const req = { socket: { remoteAddress: '10.1.2.3' }, headers: { 'x-forwarded-proto': 'wss' } };
  expect(schemeOf(req as unknown as IncomingMessage)).toBe('https');
});
