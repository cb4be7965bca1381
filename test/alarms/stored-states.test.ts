/** What is stored of the states of rules is read again as it was, also where it takes more than one reply of the database. */
import { afterAll, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { createPartitionMemory, fillMemory, objectsWithState } from '../../src/alarms/partition-memory.js';
import {
  ALARM_STATES,
  readStates,
  type StoredState,
  toEvaluatedWrite,
  toRefilledWrite,
  toStateWrite,
} from '../../src/alarms/states.js';
import { LIMITS } from '../../src/core/limits.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { testUri } from '../support/fixture.js';

const client = new MongoClient(testUri());
const database = databaseOf(client);
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

const PARTITION = 3;
const OBJECTS = LIMITS.historyPage + 100;
const RULES = [new ObjectId(), new ObjectId()].map(String);

const stateOf = (ruleId: string, objectId: string, nth: number): StoredState => ({
  ruleId,
  objectId,
  key: `key of ${ruleId}`,
  state: {
    phase: 'pending',
    sinceMs: 1_700_000_000_000.25 + nth,
    begunBy: new ObjectId().toHexString(),
    alarmId: null,
    heardMs: nth % 2 === 0 ? null : nth,
    startedMs: null,
    readings: [
      { truth: true, sinceMs: nth, value: { text: 'größer "8"', list: [1.5, null, -3] } },
      { truth: null, sinceMs: 0, value: null },
    ],
  },
  waiting: nth % 3 === 0 ? [{ step: 1, dueMs: nth, actions: [{ kind: 'webhook', handlerId: 'h' }] }] : null,
});

test('reads every row as it was stored', async () => {
  const objectIds = Array.from({ length: OBJECTS }, () => new ObjectId().toHexString());
  const stored = objectIds.flatMap((id, nth) => RULES.map((ruleId) => stateOf(ruleId, id, nth)));
  // Of an object that has only reported presence, there is no data.
  const toOf = (nth: number) => ({
    dataMs: nth === 0 ? -Infinity : nth,
    newestMs: nth,
    receivedMs: nth + 0.25,
    aheadMs: -nth - 0.5,
  });
  await client
    .db()
    .collection(ALARM_STATES)
    .bulkWrite([
      ...stored.map((one) => toStateWrite(PARTITION, one, null)),
      ...objectIds.map((id, nth) => toEvaluatedWrite(PARTITION, id, toOf(nth))),
      toRefilledWrite(PARTITION, 42.5),
    ]);
  const memory = createPartitionMemory();
  let batches = 0;
  for await (const rows of readStates(database, PARTITION)) {
    fillMemory(memory, rows);
    batches++;
  }
  expect(batches).toBeGreaterThan(1);
  expect(memory.refilledToMs).toBe(42.5);
  expect(memory.evaluated).toEqual(new Map(objectIds.map((id, nth) => [id, toOf(nth)])));
  const expected = objectIds.map((id, nth) => [id, stored.slice(2 * nth, 2 * nth + 2)] as const);
  for (const [id, [one, other]] of expected) {
    const toHeld = ({ key, state, waiting }: StoredState) => ({ key, state, waiting });
    expect(memory.states.get(id)).toEqual(
      new Map([one, other].map((each) => [each?.ruleId, toHeld(each as StoredState)])),
    );
  }
  for (const ruleId of RULES) expect(objectsWithState(memory, ruleId).sort()).toEqual(objectIds.toSorted());
});
