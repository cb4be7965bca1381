/** How deliveries are found: those of a handler; what waits in a partition; what is old; what somebody asked for; what has to go. */
import type { IndexDescription } from 'mongodb';

export const DELIVERY_INDEXES: IndexDescription[] = [
  { key: { handler: 1, _id: 1 } },
  {
    key: { partition: 1, handler: 1, number: 1, object: 1, next: 1, bytes: 1 },
    partialFilterExpression: { state: 'pending' },
  },
  {
    key: { handler: 1, state: 1, time: 1, bytes: 1 },
    partialFilterExpression: { state: { $in: ['pending', 'dead'] } },
  },
  { key: { poked: 1 }, partialFilterExpression: { poked: { $exists: true } } },
  { key: { _expires: 1 }, expireAfterSeconds: 0 },
];
