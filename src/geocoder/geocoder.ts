/** Asks the geocoder of the operator: bounded, cached, and through the same checks of addresses as webhooks. */
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { cacheSize } from '../core/cache-size.js';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Position } from '../core/position-fields.js';
import { clock } from '../platform/clock.js';
import type { Sender } from '../webhooks/request.js';
import { ADAPTERS, type AddressPlace, type GeocoderKind, type Query } from './adapters.js';

/** What the operator has set up. */
export interface GeocoderSettings {
  readonly kind: GeocoderKind;
  /** Without a slash at its end. */
  readonly url: string;
  /** What is added to every query, such as `api_key=…`; null for nothing. */
  readonly query: string | null;
}

export interface Geocoder {
  /** The address of a place; null where there is none. Throws 429, 503. */
  reverse(callerId: string, place: Position, language: string): Promise<string | null>;
  /** The places that a text names, the best first. Throws 429, 503. */
  search(callerId: string, text: string, language: string): Promise<readonly AddressPlace[]>;
}

export interface GeocoderDeps {
  readonly sender: Sender;
  /** Never receives positions or addresses: with the name of a caller beside it, a log would tell who was where. */
  readonly log: Logger;
  readonly ending: AbortSignal;
}

/** A question that waits for its answer, and who asked first. */
interface Asked {
  readonly callerId: string;
  readonly answer: Promise<Answer>;
}

interface Answer {
  readonly places: readonly AddressPlace[];
  /** How long they are remembered. */
  readonly cachedMs: number;
}

const AGENT = 'Vigil-Geocoder';
const NOTHING = Buffer.alloc(0);
/** About ten metres: what receivers of positions know, and neighbours share an entry of the cache. */
const DIGITS = 4;

export function createGeocoder(settings: GeocoderSettings, { sender, log, ending }: GeocoderDeps): Geocoder {
  const adapter = ADAPTERS[settings.kind];
  const known = new LRUCache<string, readonly AddressPlace[]>({
    ...cacheSize(LIMITS.geocoderCached),
    perf: { now: () => clock.steadyMs() },
  });
  const asked = new Map<string, Asked>();
  const perCaller = new RateLimiterMemory({
    points: LIMITS.geocoderPerCaller,
    duration: LIMITS.geocoderPerCallerMs / 1_000,
  });
  const fail = createFail(log);

  async function ask(query: Query): Promise<Answer> {
    const headers = { 'user-agent': AGENT, accept: 'application/json' };
    const url = toUrl(settings, query);
    const outcome = await sender.send({ method: 'GET', url, headers, body: NOTHING, signal: ending });
    if (outcome.status === null) return fail(outcome.error ?? 'no answer');
    // Pelias and Photon answer so to what they cannot read; Nominatim of an older kind to a place without an address; and a proxy
    // while the geocoder behind it restarts, which would hide addresses for a day.
    if (outcome.status === 404) return { places: [], cachedMs: LIMITS.geocoderNotFoundCachedMs };
    if (outcome.status !== 200) return fail(`it answered ${outcome.status}`);
    try {
      return { places: adapter.read(JSON.parse(outcome.answer)), cachedMs: LIMITS.geocoderCachedMs };
    } catch {
      return fail(`the answer is not one of ${settings.kind}`);
    }
  }

  async function find(callerId: string, query: Query): Promise<readonly AddressPlace[]> {
    await count(perCaller, callerId);
    const key = JSON.stringify(query);
    const found = known.get(key);
    if (found !== undefined) return found;
    const running = asked.get(key);
    if (running !== undefined) return (await running.answer).places;
    checkShare([...asked.values()], callerId);
    const own = { callerId, answer: ask(query) };
    asked.set(key, own);
    try {
      const { places, cachedMs } = await own.answer;
      known.set(key, places, { ttl: cachedMs });
      return places;
    } finally {
      asked.delete(key);
    }
  }

  return {
    async reverse(callerId, { lat, lon }, language) {
      const place = { lat: Number(lat.toFixed(DIGITS)), lon: Number(lon.toFixed(DIGITS)) };
      const [first] = await find(callerId, adapter.reverse(place, language));
      return first?.address ?? null;
    },
    search: (callerId, text, language) => find(callerId, adapter.search(text, language)),
  };
}

/** Leaves the others room: one caller has a share of all that can be asked at once. */
function checkShare(asked: readonly Asked[], callerId: string): void {
  const most = LIMITS.geocoderRequestsPerCaller;
  if (asked.filter((one) => one.callerId === callerId).length >= most) {
    throw tooManyRequests(1, `at most ${most} questions to the geocoder at once`);
  }
  if (asked.length >= LIMITS.geocoderRequests) throw unavailable('too many questions to the geocoder at once');
}

/** What throws a 503, and logs why at most once in a while. */
function createFail(log: Logger): (reason: string) => never {
  let loggedMs = Number.NEGATIVE_INFINITY;
  return (reason) => {
    if (clock.steadyMs() - loggedMs >= LIMITS.geocoderFailureLogMs) {
      loggedMs = clock.steadyMs();
      log.warn({ reason }, 'the geocoder did not answer as expected: addresses are not shown');
    }
    throw unavailable('the geocoder did not answer as expected');
  };
}

function toUrl({ url, query: own }: GeocoderSettings, { path, parameters }: Query): URL {
  const address = new URL(`${url}${path}`);
  address.search = String(new URLSearchParams([...new URLSearchParams(own ?? ''), ...Object.entries(parameters)]));
  return address;
}

async function count(limiter: RateLimiterMemory, callerId: string): Promise<void> {
  try {
    await limiter.consume(callerId);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const why = `at most ${LIMITS.geocoderPerCaller} questions to the geocoder per minute`;
    throw tooManyRequests(error.msBeforeNext / 1_000, why);
  }
}
