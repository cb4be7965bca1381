/**
 * Reports over real packets: every kind, who sees what, days of a time zone, limits, faults. Long because every kind is asked about the
 * same fleet.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Answer, useService } from '../support/fixture.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const KINDS = ['mileage', 'trips', 'stops', 'geofences', 'utilization', 'shift'];
/** What a kind needs. */
const pathOf = (kind: string, query: string): string =>
  `reports/${kind}?${query}${kind === 'utilization' ? '&param=mode' : ''}`;

const service = useService();
let vans: string;
let trucks: string;
let viewer: Person;

/** A packet each minute: on the way for `minutes`, then standing for ten. 0.01° of longitude at this latitude is 1,112 m. */
const drive = (startMs: number, minutes: number, lon = 0): object[] =>
  Array.from({ length: minutes + 11 }, (_, minute) => ({
    time: startMs + minute * MINUTE,
    lat: 1,
    lon: lon + Math.min(minute, minutes) / 100,
    speed: minute < minutes ? 60 : 0,
  }));

async function createObject(group: string, name: string, packets: readonly object[], more = {}): Promise<string> {
  const id = `object-${new ObjectId()}`;
  expect((await service.admin('POST', 'objects', { id, name, group, ...more })).status).toBe(200);
  if (packets.length > 0) expect((await service.admin('POST', `objects/${id}/packets`, packets)).status).toBe(200);
  return id;
}

const ask = async (kind: string, query: string, call = service.admin): Promise<Answer['body']> => {
  const { status, body } = await call('GET', pathOf(kind, query));
  expect([kind, query, status]).toEqual([kind, query, 200]);
  return body;
};

/** Midnight between two days of the week, in Berlin and in UTC. */
const MONDAY = Date.parse('2026-11-16T00:00:00Z');
const WEEK = 'from=2026-11-16&to=2026-11-22';
/** The clocks of Berlin were put forward on this day, which had 23 hours. */
const SPRING = Date.parse('2026-03-28T23:00:00Z');

let van2: string;
let van10: string;
let truck: string;

beforeAll(async () => {
  const create = async (store: string, fields: object): Promise<string> =>
    (await service.admin('POST', store, fields)).body._id;
  vans = await create('groups', { name: 'Vans' });
  const below = await create('groups', { name: 'Below', parent: vans });
  trucks = await create('groups', { name: 'Trucks' });
  viewer = await createPerson(service, { role: VIEWER_ROLE_ID, group: vans });
  const there = drive(MONDAY + 8 * HOUR, 20);
  van10 = await createObject(vans, 'Van 10', [...there, ...drive(MONDAY + 9 * HOUR, 30, 0.2)]);
  van2 = await createObject(below, 'Van 2', drive(MONDAY + 32 * HOUR, 10), { labels: ['rented', 'old'] });
  await createObject(vans, 'Van 11', []);
  truck = await createObject(trucks, 'Truck', drive(MONDAY + 8 * HOUR, 40));
});

describe('mileage', () => {
  test('has a row for each object of the group and of groups below, also for one that did not move, by name', async () => {
    const { rows, totals, ...rest } = await ask('mileage', `group=${vans}&${WEEK}`);
    expect(rest).toEqual({ from: MONDAY, to: MONDAY + 7 * 24 * HOUR - 1, tz: 'UTC', cut: null });
    const seen = rows.map(({ name, id, trips, stops, distance, maxSpeed }: Record<string, unknown>) => [
      name,
      id,
      trips,
      stops,
      Math.round(Number(distance) / 1_112),
      maxSpeed,
    ]);
    expect(seen).toEqual([
      ['Van 2', van2, 1, 1, 10, 60],
      ['Van 10', van10, 2, 2, 50, 60],
      ['Van 11', expect.any(String), 0, 0, 0, null],
    ]);
    expect(rows[1]).toMatchObject({ movingTime: 50 * MINUTE, standingTime: 50 * MINUTE });
    expect(totals).toMatchObject({ objects: 3, rows: 3, trips: 3, movingTime: HOUR, maxSpeed: 60 });
  });

  test('is the distance of the tracks, and the sum of the trips', async () => {
    const query = `group=${vans}&${WEEK}`;
    const mileage = await ask('mileage', query);
    const trips = await ask('trips', query);
    const track = (await service.admin('GET', `objects/${van10}/track?stops=true&${WEEK}`)).body.properties;
    const sumOf = (rows: readonly { distance: number }[]): number => rows.reduce((sum, row) => sum + row.distance, 0);
    const van = trips.rows.filter(({ id }: { id: string }) => id === van10);
    expect(sumOf(van)).toBe(track.distance);
    expect(sumOf(track.trips)).toBe(track.distance);
    expect(mileage.rows[1].distance).toBe(track.distance);
    expect(sumOf(mileage.rows)).toBe(mileage.totals.distance);
    expect(mileage.totals.distance).toBe(trips.totals.distance);
    expect(mileage.totals.distance).toBe(sumOf(trips.rows));
    expect(mileage.totals.movingTime).toBe(trips.totals.duration);
    expect(mileage.totals.standingTime).toBe((await ask('stops', query)).totals.duration);
  });

  test('leaves out jumps, as a track does', async () => {
    const away = { time: MONDAY + 8 * HOUR + 5.5 * MINUTE, lat: 60, lon: 60, speed: 1_023 };
    const id = await createObject(trucks, 'Jumping', [...drive(MONDAY + 8 * HOUR, 20), away]);
    const { rows } = await ask('mileage', `objects=${id}&${WEEK}`);
    expect([Math.round(rows[0].distance / 1_112), rows[0].maxSpeed]).toEqual([20, 60]);
  });

  test('divides a way over midnight between both days', async () => {
    const id = await createObject(trucks, 'Night', drive(MONDAY + 23.5 * HOUR, 40));
    const { rows, totals } = await ask('mileage', `objects=${id}&from=2026-11-16&to=2026-11-18&every=1 day`);
    const seen = rows.map(({ from, to, distance, trips, movingTime, stops }: Record<string, number>) => [
      from,
      to,
      Math.round((distance as number) / 1_112),
      trips,
      movingTime,
      stops,
    ]);
    const dayOf = (day: number): number => MONDAY + day * 24 * HOUR;
    expect(seen).toEqual([
      [dayOf(0), dayOf(1) - 1, 30, 1, 30 * MINUTE, 0],
      [dayOf(1), dayOf(2) - 1, 10, 0, 10 * MINUTE, 1],
      [dayOf(2), dayOf(3) - 1, 0, 0, 0, 0],
    ]);
    const whole = await ask('mileage', `objects=${id}&from=2026-11-16&to=2026-11-18`);
    expect(totals).toEqual({ ...whole.totals, rows: 3 });
  });

  test('has days of 23 and 25 hours where the clocks of the zone are changed', async () => {
    const id = await createObject(trucks, 'Berlin', [
      // The last minutes of the day before, and the first and the last ones of the day.
      ...drive(SPRING - 20 * MINUTE, 9),
      ...drive(SPRING + MINUTE, 15, 0.09),
      ...drive(SPRING + 22.5 * HOUR, 19, 0.24),
      ...drive(SPRING + 23 * HOUR + MINUTE, 12, 0.43),
    ]);
    const day = 'from=2026-03-29&to=2026-03-29&tz=Europe/Berlin';
    const { from, to, rows } = await ask('mileage', `objects=${id}&${day}`);
    expect([from, to]).toEqual([SPRING, SPRING + 23 * HOUR - 1]);
    expect([rows[0].trips, Math.round(rows[0].distance / 1_112)]).toEqual([2, 34]);
    const days = await ask('mileage', `objects=${id}&from=2026-03-28&to=2026-03-30&tz=Europe/Berlin&every=1 day`);
    const seen = days.rows.map((row: Record<string, number>) => [
      ((row.to as number) + 1 - (row.from as number)) / HOUR,
      row.trips,
      Math.round((row.distance as number) / 1_112),
    ]);
    expect(seen).toEqual([
      [24, 1, 9],
      [23, 2, 34],
      [24, 1, 12],
    ]);
    const autumn = await ask('mileage', `objects=${id}&from=2026-10-25&to=2026-10-25&tz=Europe/Berlin`);
    expect((autumn.to + 1 - autumn.from) / HOUR).toBe(25);
    const zoned = await ask('mileage', `objects=${id}&from=2026-03-29T00:00Z&to=2026-03-29T01:00&tz=Europe/Berlin`);
    expect([zoned.from, zoned.to]).toEqual([SPRING + HOUR, SPRING + HOUR]);
  });

  test('has weeks from Monday on and months, cut at the ends of the interval', async () => {
    const startsOf = async (every: string): Promise<string[]> => {
      const { rows } = await ask('mileage', `objects=${van2}&from=2026-10-28&to=2026-11-11&every=${every}`);
      return rows.map(({ from }: { from: number }) => new Date(from).toISOString().slice(0, 10));
    };
    expect(await startsOf('1 week')).toEqual(['2026-10-28', '2026-11-02', '2026-11-09']);
    expect(await startsOf('1 month')).toEqual(['2026-10-28', '2026-11-01']);
  });
});

test('lists trips and stops with their places and speeds', async () => {
  const start = MONDAY + 32 * HOUR;
  const of = { object: expect.stringMatching(/^[0-9a-f]{24}$/), id: van2, name: 'Van 2' };
  const trips = await ask('trips', `objects=${van2}&${WEEK}`);
  expect(trips.rows).toEqual([
    {
      ...of,
      from: start,
      to: start + 10 * MINUTE,
      duration: 10 * MINUTE,
      distance: expect.any(Number),
      averageSpeed: 66.7,
      maxSpeed: 60,
      start: [0, 1],
      end: [0.1, 1],
    },
  ]);
  const stops = await ask('stops', `objects=${van2}&${WEEK}`);
  expect(stops.rows).toEqual([
    { ...of, from: start + 10 * MINUTE, to: start + 20 * MINUTE, duration: 10 * MINUTE, place: [0.1, 1] },
  ]);
  expect((await ask('stops', `objects=${van2}&${WEEK}&stopTime=11 min`)).totals).toEqual({
    objects: 1,
    rows: 0,
    duration: 0,
  });
});

describe('time in geofences', () => {
  /** From 0.095° to 0.105° of longitude, around a place where objects stand. */
  const box = (west: number, east: number) => ({
    type: 'Polygon',
    coordinates: [[west, 0.9, east, 0.9, east, 1.1, west, 1.1, west, 0.9]].map((flat) =>
      Array.from({ length: 5 }, (_, at) => flat.slice(2 * at, 2 * at + 2)),
    ),
  });
  let depot: string;
  let yard: string;
  beforeAll(async () => {
    depot = (await service.admin('POST', 'geofences', { name: 'Depot', geometry: box(0.095, 0.105), group: vans })).body
      ._id;
    yard = (await service.admin('POST', 'geofences', { name: 'Yard', geometry: box(0.25, 0.31), group: trucks })).body
      ._id;
  });
  const start = MONDAY + 10 * HOUR;
  /** Into the depot and out of it again, twice. */
  const visit = (fromMs: number) => [...drive(fromMs, 10), ...drive(fromMs + 21 * MINUTE, 10, 0.11)];

  test('goes from the first position inside to the first one outside', async () => {
    const id = await createObject(trucks, 'Visitor', [...visit(start), ...visit(start + 4 * HOUR)]);
    const { rows, totals } = await ask('geofences', `objects=${id}&geofences=${depot}&${WEEK}`);
    expect(rows).toMatchObject([
      {
        geofence: depot,
        geofenceName: 'Depot',
        visits: 2,
        duration: 22 * MINUTE,
        arrival: start + 10 * MINUTE,
        departure: start + 4 * HOUR + 21 * MINUTE,
      },
    ]);
    expect(totals).toEqual({ objects: 1, rows: 1, visits: 2, duration: 22 * MINUTE });
  });

  test('goes on through a silence if the object is still there, and ends with it otherwise', async () => {
    const stays = await createObject(trucks, 'Stays', [...drive(start, 10), ...drive(start + 5 * HOUR, 0, 0.1)]);
    const leaves = await createObject(trucks, 'Leaves', [...drive(start, 10), ...drive(start + 5 * HOUR, 0, 0.5)]);
    const durationOf = async (id: string): Promise<number> =>
      (await ask('geofences', `objects=${id}&geofences=${depot}&${WEEK}`)).totals.duration;
    expect(await durationOf(stays)).toBe(5 * HOUR);
    expect(await durationOf(leaves)).toBe(10 * MINUTE);
  });

  test('is divided by days, and counted within the interval', async () => {
    const id = await createObject(trucks, 'Guest', [
      ...drive(MONDAY + 23.5 * HOUR, 10),
      ...drive(MONDAY + 30 * HOUR, 0, 0.1),
    ]);
    const { rows, totals } = await ask('geofences', `objects=${id}&geofences=${depot}&${WEEK}&every=1 day`);
    const seen = rows.map(({ from, visits, duration }: Record<string, number>) => [from, visits, duration]);
    const midnight = MONDAY + 24 * HOUR;
    expect(seen).toEqual([
      [MONDAY, 1, 20 * MINUTE],
      [midnight, 0, 6 * HOUR + 10 * MINUTE],
    ]);
    expect(totals.duration).toBe(6 * HOUR + 30 * MINUTE);
    const tuesday = await ask('geofences', `objects=${id}&geofences=${depot}&from=2026-11-17&to=2026-11-17`);
    expect(tuesday.rows).toMatchObject([{ visits: 1, arrival: MONDAY + 30 * HOUR, duration: 10 * MINUTE }]);
  });

  test('names only geofences that the caller may read', async () => {
    const fencesIn = async (query: string, call = viewer.call): Promise<string[]> =>
      (await ask('geofences', `${query}&${WEEK}`, call)).rows.map(
        ({ geofenceName }: Record<string, string>) => geofenceName,
      );
    expect(new Set(await fencesIn(`objects=${van10}`, service.admin))).toEqual(new Set(['Depot', 'Yard']));
    expect(await fencesIn(`objects=${van10}`)).toEqual(['Depot']);
    expect(await fencesIn(`objects=${van10}&geofences=${yard}`)).toEqual([]);
    const { token } = (await service.admin('POST', 'tokens', { name: 'x', scopes: ['GET /objects/*'] })).body;
    expect(await fencesIn('', service.as(token))).toEqual([]);
  });
});

describe('utilization', () => {
  const start = MONDAY + 10 * HOUR;
  const modes = (...values: readonly (readonly [minute: number, mode: unknown])[]) =>
    values.map(([minute, mode]) => ({ time: start + minute * MINUTE, mode }));
  const statesOf = async (packets: readonly object[], query: string): Promise<unknown[]> => {
    const id = await createObject(trucks, 'Machine', packets);
    const { rows } = await ask('utilization', `objects=${id}&${query}`);
    return rows.map(({ value, duration, share, times }: Record<string, number>) => [
      value,
      (duration as number) / MINUTE,
      share,
      times,
    ]);
  };
  const TEN_HOURS = `from=${start}&to=${start + 10 * HOUR - 1}`;

  test('is how long each value held, until the next one or the end of its gap', async () => {
    const packets = modes([0, 'idle'], [30, 'busy'], [60, 'busy'], [90, 'idle'], [300, 'off']);
    expect(await statesOf(packets, TEN_HOURS)).toEqual([
      ['idle', 90, 0.15, 2],
      ['busy', 60, 0.1, 1],
      ['off', 60, 0.1, 1],
    ]);
    expect(await statesOf(packets, `${TEN_HOURS}&gap=1 day`)).toEqual([
      ['off', 300, 0.5, 1],
      ['idle', 240, 0.4, 2],
      ['busy', 60, 0.1, 1],
    ]);
  });

  test('begins with the value that holds, and has booleans and numbers', async () => {
    const packets = modes([-30, true], [15, false], [20, 3]);
    const query = `from=${start}&to=${start + HOUR - 1}`;
    expect(await statesOf(packets, query)).toEqual([
      ['3', 40, 0.6667, 1],
      ['true', 15, 0.25, 1],
      ['false', 5, 0.0833, 1],
    ]);
    expect(await statesOf(modes([-61, true], [30, false]), query)).toEqual([['false', 30, 0.5, 1]]);
  });

  test('adds up over days to that of the interval', async () => {
    const id = await createObject(trucks, 'Night shift', modes([0, 'day'], [900, 'night'], [1_200, 'day']));
    const query = `objects=${id}&from=2026-11-16&to=2026-11-17&gap=1 day`;
    const whole = await ask('utilization', query);
    const days = await ask('utilization', `${query}&every=1 day`);
    expect(days.totals.duration).toBe(whole.totals.duration);
    const seen = days.rows.map(({ value, duration, times }: Record<string, number>) => [
      value,
      (duration as number) / HOUR,
      times,
    ]);
    // 15 hours from 10:00 on, 5 of the night, and the rest of the day.
    expect(seen).toEqual([
      ['day', 14, 1],
      ['day', 19, 1],
      ['night', 5, 1],
    ]);
  });

  test('makes one row of too many values', async () => {
    const packets = modes(...Array.from({ length: LIMITS.reportStates + 5 }, (_, minute) => [minute, minute] as const));
    const states = await statesOf(packets, `from=${start}&to=${start + HOUR - 1}`);
    expect(states).toHaveLength(LIMITS.reportStates + 1);
    expect(states[0]).toEqual([null, 10, 0.1667, 1]);
  });

  test.each(['', '&param=', '&param=$a', '&param=time', '&param=mode&gap=soon'])(
    'is refused without a parameter that can be one: %s',
    async (query) => {
      const { status, body } = await service.admin('GET', `reports/utilization?${WEEK}${query}`);
      expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(/^(param|gap): /)]);
    },
  );
});

describe('the objects of a report', () => {
  const namesIn = async (query: string, call = service.admin): Promise<string[]> =>
    (await ask('mileage', `${query}&${WEEK}`, call)).rows.map(({ name }: { name: string }) => name);

  test('are those with a label, and those that are named', async () => {
    expect(await namesIn(`labels=rented,new`)).toEqual(['Van 2']);
    expect(await namesIn(`objects=${van10},${van2},nothing`)).toEqual(['Van 2', 'Van 10']);
    expect(await namesIn(`objects=${van10},${truck}&group=${vans}`)).toEqual(['Van 10']);
    expect(await namesIn(`objects=${van10}&labels=rented,new`)).toEqual([]);
  });

  test.each(KINDS)('are only those that the caller sees: %s', async (kind) => {
    const empty = (await ask(kind, `objects=nothing&${WEEK}`, viewer.call)) as object;
    for (const query of [
      `group=${trucks}`,
      `objects=${truck}`,
      `objects=${new ObjectId()}`,
      `group=${new ObjectId()}`,
    ]) {
      expect(await ask(kind, `${query}&${WEEK}`, viewer.call)).toEqual(empty);
    }
    const own = await ask(kind, WEEK, viewer.call);
    const { rows } = await ask(kind, `group=${vans}&${WEEK}`);
    // A geofence of the other group.
    expect(own.rows).toEqual(rows.filter((row: Record<string, unknown>) => row.geofenceName !== 'Yard'));
    expect(own.totals.objects).toBe(3);
    expect((await ask(kind, `group=${trucks}&${WEEK}`)).totals.objects).toBeGreaterThan(0);
  });

  test('are only those whose tracks the caller may read', async () => {
    const tokenOf = async (scopes: string[]) =>
      service.as((await service.admin('POST', 'tokens', { name: 'report', scopes })).body.token);
    expect(await namesIn('', await tokenOf([`GET /objects/${van2}/*`]))).toEqual(['Van 2']);
    expect(await namesIn(`group=${vans}`, await tokenOf(['GET /objects', 'GET /objects/*/packets']))).toEqual([]);
    expectRefusal(await service.as(null)('GET', `reports/mileage?${WEEK}`), 401);
  });
});

describe('CSV', () => {
  test('has units in the names of columns, times of the zone, and no formulas', async () => {
    await createObject(trucks, '=1+1;"x"', drive(MONDAY + 8 * HOUR, 10));
    const { text, headers } = await service.admin(
      'GET',
      `reports/stops?group=${trucks}&from=2026-11-16&to=2026-11-16&tz=Europe/Berlin&format=csv&bom=true&separator=semicolon&decimal=comma`,
    );
    expect(headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    expect(headers['content-disposition']).toBe('attachment; filename="stops-2026-11-16.csv"');
    expect(text).toMatch(/^\ufeffobject;id;name;from;to;duration_s;latitude;longitude\r\n/);
    const row = text.split('\r\n').find((one) => one.includes('1+1')) as string;
    expect(row).toMatch(/;"'=1\+1;""x""";2026-11-16T09:10:00\+01:00;2026-11-16T09:20:00\+01:00;600;1;0,1$/);
    expect(text).not.toContain('#incomplete');
  });

  test('has all rows, whatever the limit of JSON is', async () => {
    const query = `group=${vans}&${WEEK}`;
    const { rows, totals } = await ask('trips', `${query}&limit=1`);
    expect([rows.length, totals.rows]).toEqual([1, 3]);
    const { text } = await service.admin('GET', `reports/trips?${query}&limit=1&format=csv`);
    expect(text.split('\r\n')).toHaveLength(1 + 3 + 1);
  });
});

describe('an invalid report', () => {
  test.each([
    ['', 'from'],
    ['from=soon', 'from'],
    ['from=2026-11-22&to=2026-11-16', 'from'],
    ['from=2020-01-01&to=2026-11-16', 'from'],
    [`${WEEK}&begin=2026-11-17`, 'from and begin'],
    [`${WEEK}&tz=Nowhere/Else`, 'tz'],
    [`${WEEK}&group=vans`, 'group'],
    [`${WEEK}&every=1 h`, 'every'],
    [`${WEEK}&every=often`, 'every'],
    // No date is so far away: the service computed for ever.
    [`${WEEK}&every=999999999 y`, 'every'],
    [`${WEEK}&every=999999999 quarters`, 'every'],
    [`${WEEK}&every=999999999 d`, 'every'],
    [`${WEEK}&stopTime=0`, 'stopTime'],
    [`${WEEK}&stopRadius=0`, 'stopRadius'],
    [`${WEEK}&gap=soon`, 'gap'],
    [`${WEEK}&limit=-1`, 'limit'],
    [`${WEEK}&format=pdf`, 'format'],
    [`${WEEK}&separator=pipe`, 'separator'],
  ])('is refused with a 400 that names the parameter: %s', async (query, name) => {
    const { status, body } = await service.admin('GET', `reports/mileage?${query}`);
    expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(new RegExp(`^${name}: `))]);
  });

  test('is refused with a 400 for too many names', async () => {
    const names = Array.from({ length: LIMITS.reportObjects + 1 }, (_, nth) => `o${nth}`);
    const { status, body } = await service.admin('GET', `reports/mileage?${WEEK}&objects=${names}`);
    expect([status, body.helper?.message]).toEqual([400, expect.stringMatching(/^objects: more than/)]);
  });

  test('is a 404 of another kind, and a 405 of another method', async () => {
    expectRefusal(await service.admin('GET', `reports/nothing?${WEEK}`), 404);
    expectRefusal(await service.admin('POST', 'reports/mileage', {}), 405);
    expect((await service.admin('POST', 'stores', { name: 'reports' })).status).toBe(409);
  });
});

describe('a report that would read too much', () => {
  const usual = { ...LIMITS };
  const set = (limits: Partial<Record<keyof typeof LIMITS, number>>): void => {
    Object.assign(LIMITS, limits);
  };
  afterAll(() => set(usual));

  test('is refused for too many objects', async () => {
    set({ reportObjects: 2 });
    const { status, body } = await service.admin('GET', `reports/mileage?group=${vans}&${WEEK}`);
    set(usual);
    expect([status, body.helper.message]).toEqual([413, expect.stringContaining('at most 2 objects')]);
  });

  test('says what is missing after too many packets, and is refused if that is everything', async () => {
    set({ reportPackets: 50 });
    const query = `group=${vans}&${WEEK}`;
    const { rows, totals, cut } = await ask('mileage', query);
    const { text } = await service.admin('GET', `reports/mileage?${query}&format=csv`);
    const nothing = await service.admin('GET', `reports/mileage?objects=${van10}&${WEEK}`);
    set(usual);
    expect(rows.map(({ name }: { name: string }) => name)).toEqual(['Van 2']);
    expect([totals.objects, cut]).toEqual([
      1,
      { objects: 2, reason: 'more than 50 packets: choose fewer objects or a shorter interval' },
    ]);
    expect(text).toMatch(/\r\n#incomplete: more than 50 packets: .* \(2 objects are missing\)\r\n$/);
    expectRefusal(nothing, 413);
  });

  test('is refused if it takes too long', async () => {
    set({ reportMs: -1 });
    const answer = await service.admin('GET', `reports/mileage?group=${vans}&${WEEK}`);
    set(usual);
    expect([answer.status, answer.body.helper.message]).toEqual([413, expect.stringContaining('shorter interval')]);
  });

  test('says what is missing after too many rows, and is refused if that is everything', async () => {
    const query = `group=${vans}&${WEEK}`;
    set({ reportAllRows: 1 });
    const many = await ask('trips', query);
    set({ ...usual, reportObjectRows: 1 });
    const long = await ask('trips', query);
    const nothing = await service.admin('GET', `reports/trips?objects=${van10}&${WEEK}`);
    set(usual);
    for (const { rows } of [many, long]) expect(rows.map(({ name }: { name: string }) => name)).toEqual(['Van 2']);
    const advice = 'choose fewer objects or a shorter interval';
    expect(many.cut).toEqual({ objects: 2, reason: `more than 1 rows: ${advice}` });
    expect(long.cut).toEqual({ objects: 2, reason: `more than 1 rows of one object: ${advice}` });
    expectRefusal(nothing, 413);
  });

  test.each(KINDS)('is refused for more rows than it may have: %s', async (kind) => {
    // Of an object that has every kind of row.
    const there = { time: MONDAY + 10 * HOUR, lat: 1, lon: 0.1 };
    const id = await createObject(vans, 'Of all', [
      ...drive(MONDAY + 8 * HOUR, 10),
      ...['on', 'off'].map((mode, minute) => ({ ...there, time: there.time + minute * MINUTE, mode })),
      { time: MONDAY + 11 * HOUR, online: false },
    ]);
    const query = `objects=${id}&${WEEK}`;
    expect((await ask(kind, query)).totals.rows).toBeGreaterThan(0);
    set({ reportAllRows: 0 });
    const answer = await service.admin('GET', pathOf(kind, query));
    set(usual);
    expect([answer.status, answer.body.helper.message]).toEqual([413, expect.stringMatching(/^more than 0 rows: /)]);
  });

  test('is refused for geofences of too many points', async () => {
    set({ reportFencePoints: 9 });
    const answer = await service.admin('GET', `reports/geofences?${WEEK}`);
    set(usual);
    expect([answer.status, answer.body.helper.message]).toEqual([413, expect.stringContaining('9 points')]);
    const one = (await service.admin('GET', 'geofences')).body[0]._id;
    set({ reportFencePoints: 9 });
    await ask('geofences', `${WEEK}&geofences=${one}`);
    set(usual);
  });

  test('is sent in pieces where it is long', async () => {
    const query = `group=${vans}&${WEEK}&every=1 day`;
    const whole = await ask('mileage', query);
    set({ reportPieceBytes: 1 });
    const pieces = await service.admin('GET', `reports/mileage?${query}`);
    set(usual);
    expect([pieces.headers['content-length'], pieces.body]).toEqual([undefined, whole]);
  });
});
