/**
 * How geocoders spell requests and answers. Pure.
 *
 * Nominatim: https://nominatim.org/release-docs/latest/api/Reverse/ and …/Search/
 * Photon: https://github.com/komoot/photon
 * Pelias: https://github.com/pelias/documentation (reverse.md, search.md)
 */
import { LIMITS } from '../core/limits.js';
import { type Fields, isFields, isPosition, type Position } from '../core/position-fields.js';

/** A place with its address, as text. */
export interface AddressPlace extends Position {
  readonly address: string;
}

interface Adapter {
  /** The path below the address of the geocoder, and the query. */
  reverse(place: Position, language: string): Query;
  search(text: string, language: string): Query;
  /** The places of an answer to either; throws for what is no answer of this kind. */
  read(answer: unknown): AddressPlace[];
}

export interface Query {
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
}

export const GEOCODER_KINDS = ['nominatim', 'photon', 'pelias'] as const;
export type GeocoderKind = (typeof GEOCODER_KINDS)[number];

const MOST = String(LIMITS.geocoderPlaces);
/** Photon answers 400 to a language that its index does not have; it always has these. */
const PHOTON_LANGUAGES: ReadonlySet<string> = new Set(['en', 'de', 'fr', 'it']);

const nominatim: Adapter = {
  reverse: ({ lat, lon }, language) => ({
    path: '/reverse',
    parameters: { lat: String(lat), lon: String(lon), format: 'jsonv2', 'accept-language': language },
  }),
  search: (text, language) => ({
    path: '/search',
    parameters: { q: text, format: 'jsonv2', limit: MOST, 'accept-language': language },
  }),
  read(answer) {
    if (Array.isArray(answer)) return answer.flatMap(readNominatim);
    if (!isFields(answer)) throw new Error('expected an object or an array');
    // At sea, and where there is no data: `Unable to geocode`.
    return 'error' in answer && typeof answer.error === 'string' ? [] : readNominatim(answer);
  },
};

/** It writes degrees as text. */
function readNominatim(one: unknown): AddressPlace[] {
  if (!isFields(one)) return [];
  return toPlaces(one.display_name, Number(one.lat), Number(one.lon));
}

const photon: Adapter = {
  reverse: ({ lat, lon }, language) => ({
    path: '/reverse',
    parameters: { lat: String(lat), lon: String(lon), limit: '1', ...toPhotonLanguage(language) },
  }),
  search: (text, language) => ({ path: '/api', parameters: { q: text, limit: MOST, ...toPhotonLanguage(language) } }),
  read: (answer) => featuresOf(answer).flatMap((feature) => readFeature(feature, toPhotonAddress)),
};

const toPhotonLanguage = (language: string): Record<string, string> =>
  PHOTON_LANGUAGES.has(language) ? { lang: language } : {};

/** Photon names the parts of an address only. */
function toPhotonAddress(parts: Fields): string {
  const of = (name: string): string => (typeof parts[name] === 'string' ? (parts[name] as string) : '');
  const isStreet = parts.type === 'street';
  const street = [of('street') || (isStreet ? of('name') : ''), of('housenumber')].filter(Boolean).join(' ');
  const town = [of('postcode'), of('city') || of('locality') || of('county')].filter(Boolean).join(' ');
  const all = [isStreet ? '' : of('name'), street, town, of('state'), of('country')];
  return [...new Set(all.filter(Boolean))].join(', ');
}

const pelias: Adapter = {
  reverse: ({ lat, lon }, language) => ({
    path: '/v1/reverse',
    parameters: { 'point.lat': String(lat), 'point.lon': String(lon), size: '1', lang: language },
  }),
  search: (text, language) => ({ path: '/v1/search', parameters: { text, size: MOST, lang: language } }),
  read: (answer) => featuresOf(answer).flatMap((feature) => readFeature(feature, ({ label }) => label)),
};

function featuresOf(answer: unknown): unknown[] {
  if (!isFields(answer) || !Array.isArray(answer.features)) throw new Error('expected a FeatureCollection');
  return answer.features;
}

function readFeature(feature: unknown, toAddress: (properties: Fields) => unknown): AddressPlace[] {
  if (!isFields(feature) || !isFields(feature.properties) || !isFields(feature.geometry)) return [];
  const { coordinates } = feature.geometry;
  if (!Array.isArray(coordinates)) return [];
  return toPlaces(toAddress(feature.properties), coordinates[1], coordinates[0]);
}

/** One place, or none of what has no address or no position. */
function toPlaces(address: unknown, lat: unknown, lon: unknown): AddressPlace[] {
  if (typeof address !== 'string' || address.trim() === '' || !isPosition(lat, lon)) return [];
  const text = address.trim().slice(0, LIMITS.geocoderAddressCharacters);
  return [{ address: text, lat: lat as number, lon: lon as number }];
}

export const ADAPTERS: Readonly<Record<GeocoderKind, Adapter>> = { nominatim, photon, pelias };
