// The usual server: what a good developer writes in a day with the same libraries. It gives the same answers, checks tokens and
// permissions, and stores as durably. It exists only to be measured beside the service.
import { createServer } from 'node:http';
import { verify } from '@node-rs/argon2';
import MongoStore from 'connect-mongo';
import cors from 'cors';
import express, { type NextFunction, type Request, type Response } from 'express';
import session from 'express-session';
import helmet from 'helmet';
import jwt from 'jsonwebtoken';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { Server } from 'socket.io';

const { PORT, MONGODB_URI = '', SECRET = '' } = process.env;
const client = await new MongoClient(MONGODB_URI, { writeConcern: { w: 'majority', journal: true } }).connect();
const db = client.db();
const objects = db.collection('objects');
const packets = db.collection('packets');

const app = express();
app.use(helmet(), cors(), express.json({ limit: '16mb' }));
const store = MongoStore.create({ client });
app.use(session({ secret: SECRET, name: 'sid', resave: false, saveUninitialized: false, store }));

app.post('/api/v1/auth/token', async (req, res) => {
  const user = await db.collection('users').findOne({ login: String(req.body.login) });
  if (!user || !(await verify(user.password, String(req.body.password)))) return void res.sendStatus(401);
  const token = jwt.sign({ user: user._id.toHexString(), group: user.group }, SECRET, { expiresIn: '1d' });
  res.json({ sucess: true, type: 'access', token });
});

interface User {
  user: string;
  group: string;
}

function authenticate(req: Request, res: Response, next: NextFunction): void {
  try {
    res.locals.user = jwt.verify((req.headers.authorization ?? '').replace('Bearer ', ''), SECRET);
    next();
  } catch {
    res.status(401).json({ success: false, code: '401', message: 'Unauthorized', tags: ['error_unauthorized'] });
  }
}

function maySee({ user, group }: User, object: Document): boolean {
  const has = (ids: ObjectId[], id: string) => ids.some((one) => one.equals(id));
  return has(object.branch, group) || object.owner.equals(user) || has(object.access, user);
}

async function findObject(req: Request, res: Response): Promise<Document | null> {
  const id = String(req.params.id);
  const object = await objects.findOne(ObjectId.isValid(id) ? { _id: new ObjectId(id) } : { id });
  if (object && maySee(res.locals.user, object)) return object;
  res.status(404).json({ success: false, code: '404', message: 'Not Found', tags: ['error_not_found'] });
  return null;
}

const api = express.Router();
api.use(authenticate);

api.get('/objects', async (req, res) => {
  const { user, group } = res.locals.user as User;
  const visible = [{ branch: new ObjectId(group) }, { owner: new ObjectId(user) }, { access: new ObjectId(user) }];
  const limit = Math.min(Number(req.query.limit ?? 10_000), 10_000);
  res.json(await objects.find({ $or: visible }).sort({ _id: 1 }).limit(limit).toArray());
});

api.get('/objects/:id', async (req, res) => {
  const object = await findObject(req, res);
  if (object) res.json({ ...object, success: true });
});

api.post('/objects', async (req, res) => {
  const { user, group } = res.locals.user as User;
  const owner = new ObjectId(user);
  const groupId = new ObjectId(group);
  const model = new ObjectId('000000000000000000000010');
  const common = { owner, group: groupId, branch: [groupId], access: [], time: Date.now() };
  const object = { model, models: { id: model }, status: '', active: true, ...req.body, ...common };
  await objects.insertOne(object);
  res.json({ ...object, success: true });
});

api.patch('/objects/:id', async (req, res) => {
  const before = await findObject(req, res);
  if (!before) return;
  const after = await objects.findOneAndUpdate(
    { _id: before._id },
    { $set: { ...req.body, _at: Date.now() } },
    { returnDocument: 'after' },
  );
  const names = Object.keys(req.body);
  const pick = (object: Document | null) => Object.fromEntries(names.map((name) => [name, object?.[name]]));
  io.emit('object-update', { id: before._id, before: pick(before), after: pick(after) });
  res.json({ ...after, success: true });
});

api.get('/objects/:id/packets', async (req, res) => {
  const object = await findObject(req, res);
  if (!object) return;
  const time = { $gte: Number(req.query.begin ?? 0), $lte: Number(req.query.end ?? Date.now()) };
  res.json(await packets.find({ _oid: object._id, time }).sort({ time: 1, _ts: 1 }).limit(10_000).toArray());
});

api.get('/objects/:id/series', async (req, res) => {
  const object = await findObject(req, res);
  if (!object) return;
  const from = Number(req.query.from);
  const to = Number(req.query.to);
  const points = Number(req.query.points);
  const name = req.query.params;
  const step = Math.ceil((to - from + 1) / points);
  const value = `$${name}`;
  const nth = { $floor: { $divide: [{ $subtract: ['$time', from] }, step] } };
  const all = { first: { $first: value }, last: { $last: value }, min: { $min: value }, max: { $max: value } };
  const pipeline = [
    { $match: { _oid: object._id, time: { $gte: from, $lte: to } } },
    { $sort: { time: 1, _ts: 1 } },
    { $group: { _id: nth, ...all } },
    { $sort: { _id: 1 } },
  ];
  const buckets = await packets.aggregate(pipeline).toArray();
  const column = (key: string) => buckets.map((bucket) => bucket[key]);
  const columns = { first: column('first'), last: column('last'), min: column('min'), max: column('max') };
  res.json({ time: buckets.map(({ _id }) => from + _id * step), [String(name)]: columns });
});

api.post('/objects/:id/packets', async (req, res) => {
  const object = await findObject(req, res);
  if (!object) return;
  const many = Array.isArray(req.body);
  const toPacket = (message: Document): Document => {
    const nowMs = Date.now();
    const common = { online: true, _oid: object._id, id: object.id, _gid: object.group };
    return { _ts: nowMs * 1_000, time: nowMs, ...common, ...message };
  };
  const made = (many ? req.body : [req.body]).map(toPacket) as Document[];
  await packets.insertMany(made);
  const latest = made.reduce((a, b) => (b.time >= a.time ? b : a));
  await objects.updateOne(
    { _id: object._id, 'state.time': { $not: { $gt: latest.time } } },
    { $set: { state: latest } },
  );
  for (const packet of made) io.emit('object-packet', packet);
  res.json(many ? { success: true, count: made.length } : { ...made[0], success: true });
});

app.use('/api/v1', api);
const server = createServer(app);
const io = new Server(server, { allowEIO3: true, pingInterval: 25_000, pingTimeout: 60_000 });
io.use((socket, next) => {
  try {
    jwt.verify((socket.handshake.headers.authorization ?? '').replace('Bearer ', ''), SECRET);
    next();
  } catch {
    next(new Error('Unauthorized'));
  }
});
server.listen(Number(PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit());
