// The floor: the least code that could answer the same requests. node:http, one raw command of the driver per request, its reply
// converted to JSON. No sessions, permissions, checks or router; the state of an object is stored with it and never updated. No real
// server reaches it: results are compared with it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BSON, type Document, MongoClient, ObjectId } from 'mongodb';
import { WebSocketServer } from 'ws';
import { createStampClock } from '../../src/packets/packet.js';
import { readBatch } from '../../src/platform/mongo/bson/document-batch.js';
import { JsonWriter, toJson } from '../../src/platform/mongo/bson/json-writer.js';
import { findField } from '../../src/platform/mongo/bson/reader.js';

/** TICK_MS: how long live events are gathered before they are written to each socket together; 0: one write per event. */
const { PORT, MONGODB_URI = '', TICK_MS = '0' } = process.env;
const client = await new MongoClient(MONGODB_URI, { writeConcern: { w: 'majority', journal: true } }).connect();
const db = client.db();
const stampUs = createStampClock(Date.now);
const SUCCESS = Buffer.from(',"success":true}');
const MODEL = new ObjectId('000000000000000000000010');
const GROUP = new ObjectId('000000000000000000000001');
const OWNER = new ObjectId('000000000000000000000002');

function answer(res: ServerResponse, body: Buffer): void {
  res.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': body.length });
  res.end(body);
}

const withSuccess = (json: Buffer): Buffer => Buffer.concat([json.subarray(0, -1), SUCCESS]);

async function find(command: Document): Promise<Uint8Array[]> {
  const reply = await db.command({ ...command, singleBatch: true }, { raw: true });
  return readBatch(reply.cursor as Uint8Array).documents;
}

function sendList(res: ServerResponse, documents: Uint8Array[]): void {
  const writer = new JsonWriter();
  writer.raw('[\n');
  documents.forEach((document, at) => {
    if (at > 0) writer.raw('\n,\n');
    writer.document(document);
  });
  writer.raw('\n]\n');
  answer(res, writer.take());
}

function readBody(req: IncomingMessage): Promise<Document> {
  return new Promise((resolve) => {
    let text = '';
    req.setEncoding('utf8');
    req.on('data', (part) => {
      text += part;
    });
    req.on('end', () => resolve(JSON.parse(text)));
  });
}

async function insert(res: ServerResponse, collection: string, document: Document): Promise<void> {
  await db.collection(collection).insertOne(document);
  answer(res, withSuccess(toJson(BSON.serialize(document))));
}

async function receive(req: IncomingMessage, res: ServerResponse, _oid: ObjectId): Promise<void> {
  const body = await readBody(req);
  const toPacket = ({ time, ...rest }: Document): Document => ({
    _id: new ObjectId(),
    _ts: stampUs(),
    time,
    online: true,
    _oid,
    id: 'truck',
    _gid: GROUP,
    ...rest,
  });
  if (!Array.isArray(body)) return insert(res, 'packets', toPacket(body));
  await db.collection('packets').insertMany(body.map(toPacket));
  answer(res, Buffer.from(`{"success":true,"count":${body.length}}`));
}

async function create(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { id, name, ...rest } = await readBody(req);
  const common = { owner: OWNER, group: GROUP, branch: [GROUP], access: [], time: Date.now() };
  const own = { model: MODEL, models: { id: MODEL }, status: '', active: true, ...rest };
  await insert(res, 'objects', { _id: new ObjectId(), id, name, ...own, ...common });
}

async function change(req: IncomingMessage, res: ServerResponse, _id: ObjectId): Promise<void> {
  const update = { $set: { ...(await readBody(req)), _at: Date.now() } };
  const reply = await db.command({ findAndModify: 'objects', query: { _id }, update, new: true }, { raw: true });
  answer(res, withSuccess(toJson(reply.value as Uint8Array)));
}

async function listPackets(res: ServerResponse, _oid: ObjectId, search: URLSearchParams): Promise<void> {
  const time = { $gte: Number(search.get('begin')), $lte: Number(search.get('end')) };
  const sort = { time: 1, _ts: 1 };
  const limit = 10_000;
  sendList(res, await find({ find: 'packets', filter: { _oid, time }, sort, limit, batchSize: limit }));
}

async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const [path = '', query] = (req.url ?? '').split('?');
  const [, , , , id, part] = path.split('/');
  if (id === undefined) {
    if (req.method === 'POST') return create(req, res);
    return sendList(res, await find({ find: 'objects', sort: { _id: 1 }, limit: 100, batchSize: 100 }));
  }
  const _id = new ObjectId(id);
  if (req.method === 'PATCH') return change(req, res, _id);
  if (req.method === 'POST') return receive(req, res, _id);
  if (part !== undefined) return listPackets(res, _id, new URLSearchParams(query));
  const [object] = await find({ find: 'objects', filter: { _id }, limit: 1 });
  answer(res, withSuccess(toJson(object as Uint8Array)));
}

const server = createServer((req, res) => void handle(req, res).catch((error) => res.destroy(error)));
const sockets = new WebSocketServer({ server, path: '/socket.io/', perMessageDeflate: false });
const raw = new Set<Socket>();
sockets.on('connection', (socket, { socket: under }) => {
  socket.send('40');
  raw.add(under);
  socket.on('close', () => raw.delete(under)).on('error', () => undefined);
});

function toFrame(text: string): Buffer {
  const body = Buffer.from(text);
  const head =
    body.length < 126 ? Buffer.from([0x81, body.length]) : Buffer.from([0x81, 126, body.length >> 8, body.length]);
  return Buffer.concat([head, body]);
}

let frames: Buffer[] = [];
function publishAll(): void {
  const bytes = Buffer.concat(frames);
  frames = [];
  for (const socket of raw) socket.write(bytes);
}

function publish(document: Buffer): void {
  const text = `42["object-packet",${toJson(document)}]`;
  if (Number(TICK_MS) === 0) {
    for (const socket of sockets.clients) socket.send(text);
    return;
  }
  if (frames.push(toFrame(text)) === 1) setTimeout(publishAll, Number(TICK_MS));
}

async function watch(): Promise<void> {
  const session = client.startSession();
  const pipeline = [{ $changeStream: {} }, { $match: { operationType: 'insert' } }, { $project: { fullDocument: 1 } }];
  const command = { aggregate: 'packets', pipeline, cursor: { batchSize: 0 } };
  const { cursor } = await db.command(command, { session, promoteLongs: false });
  const next = { getMore: cursor.id, collection: 'packets', maxTimeMS: 500 };
  for (;;) {
    const reply = await db.command(next, { session, raw: true });
    for (const event of readBatch(reply.cursor as Uint8Array).documents) {
      const document = findField(event, 'fullDocument', BSON.BSONType.object);
      if (document !== null) publish(document);
    }
  }
}

void watch();
server.listen(Number(PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit());
