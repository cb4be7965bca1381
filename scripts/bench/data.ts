// The data of the measured servers, and the bodies of requests. Without dependencies, since loads import it.

/** The amount of data; `scale` multiplies it. */
export interface Size {
  readonly objects: number;
  /** The number of objects with long histories, for pages of 10,000 packets. */
  readonly longHistories: number;
  readonly longPackets: number;
  /** The packets of each object with a short history. */
  readonly histories: number;
  readonly packets: number;
  /** The share of the sockets that are opened, and of the requests a second that are sent: below 1 with less data than usual. */
  readonly loadShare: number;
}

export const LOGIN = { login: 'admin', password: 'correct horse battery' };
/** A source of the service, through which a Traccar server forwards. */
export const SOURCE = { id: 'bench', key: 'key-of-the-source-that-is-measured' };
/** The time of each object's first packet; the others follow at intervals of a second. */
export const BEGIN_MS = Date.UTC(2025, 0, 1);
export const STEP_MS = 1_000;
export const PAGE = 10_000;

/** 1,000 objects, 200,000 packets of 100 of them, times the scale. */
export function sizeOf(scale: number): Size {
  return {
    objects: Math.max(200, Math.round(1_000 * scale)),
    longHistories: 4,
    longPackets: Math.round(20_000 * scale),
    histories: 96 * Math.max(1, Math.round(scale)),
    packets: Math.ceil(1_250 * Math.min(1, scale)),
    loadShare: Math.min(1, scale),
  };
}

/** The `_id` of an object by its number. */
export const objectId = (nth: number): string => `65000000${nth.toString(16).padStart(16, '0')}`;

/** The database of a server: where the URI names a database, this begins its name, so that two runs can share a MongoDB. */
export function databaseName(uri: string, server: string): string {
  const given = new URL(uri).pathname.slice(1);
  return given === '' ? server : `${given}-${server}`;
}

export const databaseUri = (uri: string, server: string): string =>
  uri.replace(/\/[^/?]*\?/, `/${databaseName(uri, server)}?`);

/** The body that creates an object. */
export function newObject(id: string) {
  return {
    id,
    name: `Truck ${id}`,
    description: 'refrigerated, two axles',
    config: { gps: { hz: 1, source: 'internal' }, plate: 'B-VG 1234' },
    phone: '+49 30 1234567',
    fleet: 'north',
    odometer: 182_340.5,
  };
}

/** The place of an object by its number: they are spread over a continent. */
export const placeOf = (nth: number) => ({
  lat: 37 + ((nth * 7_919) % 2_000) / 100,
  lon: -8 + ((nth * 104_729) % 3_600) / 100,
});

/** The packet of a device at this time. */
export function newPacket(timeMs: number) {
  const second = (timeMs / STEP_MS) % 10_000;
  return { time: timeMs, lat: 48.1 + second / 1e5, lon: 11.5 + second / 7e4, speed: second % 90 };
}
