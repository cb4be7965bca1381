/** Routes: the address of a place, and the places that an address names, from the geocoder of the operator. */
import type { Request } from 'express';
import { z } from 'zod';
import { badRequest, wrongAddress } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { isPosition } from '../core/position-fields.js';
import { callerOf } from '../platform/http/caller.js';
import { parseText } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { every, SUCCESS } from '../platform/http/schema.js';
import type { Geocoder } from './geocoder.js';

export interface GeocoderRouteDeps {
  /** Null where the operator has not set one up. */
  readonly geocoder: Geocoder | null;
}

const LANGUAGE: Parameter = {
  component: 'geocoderLanguage',
  schema: z
    .string()
    .regex(/^[a-z]{2}$/)
    .default('en'),
  example: 'de',
  description: 'The language of addresses, as two letters',
};

const degrees = (name: string, example: number): Parameter => ({
  component: `geocoder${name}`,
  schema: z.number(),
  example,
  description: `${name}, in degrees`,
  isRequired: true,
});

const reverseGeocode = defineRoute({
  method: 'GET',
  path: '/api/v1/geocoder/reverse',
  name: 'reverseGeocode',
  tag: 'geocoder',
  summary: 'Returns the address of a place',
  docs: 'The address of a place (`lat`, `lon`, `lang`), from the [geocoder](geocoder.md) of the operator; `null` where there is none',
  auth: 'permission',
  limit: 'request',
  query: { lat: degrees('Latitude', 48.26), lon: degrees('Longitude', 11.434), lang: LANGUAGE },
  answer: {
    description: 'The address',
    schema: every(z.object({ address: z.string().nullable() }), SUCCESS),
  },
  errors: [404, 429],
  handle:
    ({ geocoder }: GeocoderRouteDeps) =>
    async (req, res) => {
      const lat = parseDegrees(req, 'lat');
      const lon = parseDegrees(req, 'lon');
      if (!isPosition(lat, lon)) throw badRequest('lat, lon: expected a place, in degrees');
      const language = parseLanguage(req);
      const address = await inUse(geocoder).reverse(callerOf(res).userId, { lat, lon }, language);
      sendJson(res, JSON.stringify({ address, success: true }));
    },
});

const geocode = defineRoute({
  method: 'GET',
  path: '/api/v1/geocoder/search',
  name: 'geocode',
  tag: 'geocoder',
  summary: 'Returns the places that an address names',
  docs: 'At most five places that an address names (`text`, `lang`), the best first, from the [geocoder](geocoder.md) of the operator',
  auth: 'permission',
  limit: 'request',
  query: {
    text: {
      component: 'geocoderText',
      schema: z.string().min(1).max(LIMITS.geocoderTextCharacters),
      example: 'Marienplatz 1, München',
      description: 'The address',
      isRequired: true,
    },
    lang: LANGUAGE,
  },
  answer: {
    description: 'The places',
    schema: every(
      z.object({ places: z.array(z.strictObject({ address: z.string(), lat: z.number(), lon: z.number() })) }),
      SUCCESS,
    ),
  },
  errors: [404, 429],
  handle:
    ({ geocoder }: GeocoderRouteDeps) =>
    async (req, res) => {
      const text = (parseText(req.query, 'text') ?? '').trim();
      if (text === '' || text.length > LIMITS.geocoderTextCharacters)
        throw badRequest(`text: expected 1 to ${LIMITS.geocoderTextCharacters} characters`);
      const places = await inUse(geocoder).search(callerOf(res).userId, text, parseLanguage(req));
      sendJson(res, JSON.stringify({ places, success: true }));
    },
});

export const GEOCODER_ROUTES = [reverseGeocode, geocode];

function inUse(geocoder: Geocoder | null): Geocoder {
  if (geocoder === null) throw wrongAddress('no geocoder is set up: the operator names one in GEOCODER_URL');
  return geocoder;
}

function parseDegrees(req: Request, name: string): number {
  const text = parseText(req.query, name);
  return text === null || !/^-?\d{1,3}(\.\d{1,15})?$/.test(text) ? Number.NaN : Number(text);
}

function parseLanguage(req: Request): string {
  const language = parseText(req.query, 'lang') ?? 'en';
  if (!/^[a-z]{2}$/.test(language)) throw badRequest('lang: expected a language of two letters, such as de');
  return language;
}
