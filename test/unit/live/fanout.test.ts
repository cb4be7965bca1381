/** Publishing during a round of writing: each member receives all events once and in order, and equal batches share one buffer. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { EventBatch } from '../../../src/core/feed.js';
import type { LiveEvent } from '../../../src/live/events.js';
import { createFanOut, createMember } from '../../../src/live/fanout.js';
import { until } from '../../support/until.js';

const READER = 'group:1';
const ROOMS = new Set([`${READER}|*|*`]);

const createEvent = (nth: number): LiveEvent => ({
  limits: null,
  viewers: [],
  name: 'object-packet',
  objectId: 'o',
  audience: [READER],
  position: String(nth),
  encoded: {},
  toJson: () => Buffer.from(`{"nth":${nth}}`),
});

test('writes events of a long round to all members in the next one, encoded once', async () => {
  const members = 200;
  const events = 400;
  const fanOut = createFanOut();
  const received = Array.from({ length: members }, () => [] as string[]);
  const buffers = new Set<Buffer>();
  let writes = 0;
  const write = (to: string[], batch: EventBatch): void => {
    writes++;
    buffers.add(batch.bytes('frame'));
    to.push(...batch.pieces('frame').map(({ position }) => position));
    // As long as a write to the network takes: so a round takes many turns.
    const untilMs = performance.now() + 0.2;
    while (performance.now() < untilMs);
  };
  for (const to of received)
    fanOut.setRooms(
      createMember((batch) => write(to, batch)),
      { rooms: ROOMS, permitted: null },
    );
  for (let nth = 0; nth < events; nth++) {
    fanOut.publish(createEvent(nth));
    await turn();
  }
  const published = Array.from({ length: events }, (_, nth) => String(nth));
  await until(() => received.every(({ length }) => length === events), 'all of them received everything');
  for (const to of received) expect(to).toEqual(published);
  // A round has one buffer, for all its members, wherever in it events were published.
  expect(writes).toBeGreaterThan(members);
  expect(buffers.size).toBeLessThanOrEqual(writes / members + 1);
  fanOut.stop();
});

test('sends later events without duplicates to a member that joins or is flushed during a round', async () => {
  const fanOut = createFanOut();
  const received: string[][] = [];
  const enter = () => {
    const to: string[] = [];
    received.push(to);
    const member = createMember((batch) => {
      to.push(...batch.pieces('frame').map(({ position }) => position));
      const untilMs = performance.now() + 1;
      while (performance.now() < untilMs);
    });
    fanOut.setRooms(member, { rooms: ROOMS, permitted: null });
    return member;
  };
  const early = Array.from({ length: 30 }, enter);
  for (let nth = 0; nth < 60; nth++) {
    fanOut.publish(createEvent(nth));
    if (nth % 3 === 0) fanOut.flush(early[nth % early.length] as (typeof early)[number]);
    if (nth === 29) enter();
    await turn();
  }
  await until(() => received.every((to) => to.at(-1) === '59'), 'all of them received the last');
  const published = Array.from({ length: 60 }, (_, nth) => String(nth));
  for (const to of received.slice(0, -1)) expect(to).toEqual(published);
  expect(received.at(-1)).toEqual(published.slice(30));
  fanOut.stop();
});
