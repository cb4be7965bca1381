/** Deliveries as those see them who see their handler: listed, counted, and asked to be sent again. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { isId } from '../core/entity.js';
import { conflict, notFound } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { costOf, type Page, type Selection } from '../core/list.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import { EMPTY_PAGE, type JsonPage, readPage, summarizeFound } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { type Layout, projectionOf, selectionFilter, toPageFind, toPlain } from '../platform/mongo/schema/mapping.js';
import { DELIVERIES } from './deliveries.js';

export const DELIVERY_LAYOUT: Layout = {
  references: ['handler', 'object'],
  texts: ['event', 'state', 'error'],
  hidden: ['partition', 'number', 'body', 'poked', 'batchSize', 'handover', '_expires'],
  derived: [],
  builtIn: false,
  followsObject: false,
};
const INDEXED = { sort: '_id', time: false };

function conditionsOf(handlerId: string, selection: Selection): Filter<Document>[] {
  return [{ handler: new ObjectId(handlerId) }, ...selectionFilter(DELIVERY_LAYOUT, selection, ['event'])];
}

/** A page of a handler's deliveries as JSON, ascending by `_id` unless the query says otherwise. */
export async function listDeliveries(database: Database, handlerId: string, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return EMPTY_PAGE;
  const command = {
    find: DELIVERIES,
    ...toPageFind(DELIVERY_LAYOUT, page, conditionsOf(handlerId, page)),
    projection: projectionOf(DELIVERY_LAYOUT, page.only),
  };
  const read = (reader: Database) => readPage(reader, rawBatches(reader, command));
  return runList([database], costOf(page, INDEXED), read);
}

/** How many there are within the filters, and the first and last of them. */
export async function summarizeDeliveries(
  database: Database,
  handlerId: string,
  selection: Selection,
): Promise<Buffer> {
  const filter = { $and: conditionsOf(handlerId, selection) };
  const projection = projectionOf(DELIVERY_LAYOUT, selection.only);
  const command = { find: DELIVERIES, filter, ...(projection && { projection }) };
  return runList([database], 'scan', (reader) => summarizeFound(reader, command));
}

/** Sends a message again, as if it were new; it keeps its id. Throws 404; 409 where there is nothing left to send. */
export async function retryDelivery(
  database: Database,
  { handlerId, deliveryId }: { handlerId: string; deliveryId: string },
  nowMs: number,
): Promise<JsonObject> {
  if (!isId(deliveryId)) throw notFound();
  const named = { _id: new ObjectId(deliveryId), handler: new ObjectId(handlerId) };
  const deliveries = database.db.collection(DELIVERIES);
  const again = [
    { $set: { state: 'pending', attempts: 0, time: nowMs, poked: '$partition' } },
    // Its batch was another one, with the time that it had.
    { $unset: ['next', '_expires', 'batch', 'batchSize'] },
  ];
  const options = { returnDocument: 'after', projection: projectionOf(DELIVERY_LAYOUT, null) ?? {} } as const;
  const found = await mapDriverErrors(() =>
    deliveries.findOneAndUpdate({ ...named, body: { $exists: true } }, again, options),
  );
  if (found !== null) return toPlain(found) as JsonObject;
  const present = await mapDriverErrors(() => deliveries.findOne(named, { projection: { state: 1 } }));
  if (present === null) throw notFound();
  throw conflict(`the message is ${present.state}: nothing is left to send`);
}
