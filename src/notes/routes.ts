/** Routes of notes: write one on an object, list those of an interval, remove one. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { followObject, isHiddenFromOwner } from '../commands/command-store.js';
import { type Entity, isId } from '../core/entity.js';
import { badRequest, conflict, notFound } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { explainQueryTime, parseQueryTime } from '../core/time.js';
import { inSequence } from '../entities/in-sequence.js';
import { getEntity } from '../entities/read.js';
import { createEntity, newId } from '../entities/write.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { ENTITY_KEY, ID, INTERVAL_QUERY, idParameter } from '../platform/http/parameters.js';
import { parseInterval } from '../platform/http/query-params.js';
import { sendArray, sendEntity, sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, literal, SUCCESS, TIME } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { countNotes, listNotes, NOTES, removeNote, removeOrphan, toNote } from './note-store.js';

export interface NoteDeps extends BodyDeps {
  readonly database: Database;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');
const PATH = '/api/v1/objects/:id/notes';

const TIME_GIVEN = literal({ type: ['integer', 'string', 'null'] });

const NOTE = z
  .object({
    _id: ID,
    object: ID,
    time: TIME.describe('The moment that it is about, or the beginning of an interval'),
    to: TIME.nullable().describe('The end of the interval, if it is about one'),
    text: z.string(),
    author: z.string().describe('The login of who wrote it'),
    created: TIME,
  })
  .meta({ id: 'ObjectNote' });

const addNote = defineRoute({
  method: 'POST',
  path: PATH,
  name: 'addNote',
  tag: 'notes',
  summary: 'Writes a note on an object, about a moment or an interval',
  docs: 'Writes a [note](stores.md#notes) on an object: `{text, time, to}`',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  body: {
    schema: z
      .object({
        text: z.string().min(1).max(LIMITS.noteCharacters),
        time: TIME_GIVEN.describe('Milliseconds since the epoch, or ISO 8601; now by default'),
        to: TIME_GIVEN.describe('The same: the end of an interval; none by default'),
      })
      .partial({ time: true, to: true }),
    example: { text: 'The door was left open', time: '2026-11-23T09:10', to: '2026-11-23T09:40' },
    isRequired: true,
    limitBytes: LIMITS.noteBodyBytes,
  },
  answer: { description: 'The note', schema: every(NOTE, SUCCESS) },
  errors: [404, 409],
  handle: (deps: NoteDeps) => async (req, res) => {
    const { database } = deps;
    const caller = callerOf(res);
    const object = await getObject(deps, req, res);
    const nowMs = deps.now();
    const wanted = parseNote(parseObject(req.body ?? {}), nowMs);
    const { group, branch, access } = object;
    const entity = {
      _id: newId(),
      object: object._id,
      ...wanted,
      author: caller.login,
      created: nowMs,
      owner: caller.userId,
      // A note has the same audience as its object.
      group,
      branch,
      access,
      _withoutOwner: isHiddenFromOwner(object, caller.userId),
    };
    const stored = await inSequence(`notes of ${object._id}`, async () => {
      if ((await countNotes(database, object._id)) >= LIMITS.notesPerObject) {
        throw conflict(`the object has ${LIMITS.notesPerObject} notes: remove one first`);
      }
      return createEntity(database, NOTES, entity);
    });
    const note = toNote(stored);
    // The object may have been removed, shared or moved since it was read.
    if (await removeOrphan(database, note)) throw notFound();
    await followObject(database, object._id, { entityId: note._id, access, branch });
    res.locals.action = 'note added';
    res.locals.entityId = note._id;
    sendEntity(res, { ...note });
  },
});

const listNotesOfObject = defineRoute({
  method: 'GET',
  path: PATH,
  name: 'listNotes',
  tag: 'notes',
  summary: 'The notes on an object, the newest first',
  docs: 'The [notes](stores.md#notes) on an object, the newest first; with `from` and `to`, those about any of that time',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: INTERVAL_QUERY,
  answer: { description: 'The notes', schema: z.array(NOTE).max(LIMITS.notesPerObject) },
  errors: [404],
  handle: (deps: NoteDeps) => async (req, res) => {
    const { _id: objectId } = await getObject(deps, req, res);
    const { fromMs, toMs } = parseInterval(req.query);
    sendArray(res, await listNotes(deps.database, scopeIn(res), { objectId, fromMs, toMs }));
  },
});

const removeNoteOfObject = defineRoute({
  method: 'DELETE',
  path: `${PATH}/:noteID`,
  name: 'removeNote',
  tag: 'notes',
  summary: 'Removes a note on an object',
  docs: 'Removes a [note](stores.md#notes) on an object',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY, noteID: idParameter('The `_id` of the note') },
  answer: { description: 'The note is removed', schema: SUCCESS },
  errors: [404],
  handle: (deps: NoteDeps) => async (req, res) => {
    const { _id: objectId } = await getObject(deps, req, res);
    const noteId = String(req.params.noteID).toLowerCase();
    if (!isId(noteId) || !(await removeNote(deps.database, scopeIn(res), objectId, noteId))) throw notFound();
    res.locals.action = 'note removed';
    res.locals.entityId = noteId;
    sendJson(res, JSON.stringify({ success: true }));
  },
});

export const NOTE_ROUTES = [listNotesOfObject, addNote, removeNoteOfObject];

const getObject = ({ database }: NoteDeps, req: Request, res: Response): Promise<Entity> =>
  getEntity(database, OBJECTS, scopeIn(res), String(req.params.id));

/** Throws a 400 that names the field. */
function parseNote({ text, time = null, to = null }: JsonObject, nowMs: number) {
  if (typeof text !== 'string' || text.trim() === '' || text.length > LIMITS.noteCharacters) {
    throw badRequest(`text: expected text of at most ${LIMITS.noteCharacters} characters`);
  }
  const timeMs = time === null ? nowMs : timeIn('time', time, 'first');
  const toMs = to === null ? null : timeIn('to', to, 'last');
  if (toMs !== null && toMs < timeMs) throw badRequest('to: expected a time after time');
  return { time: timeMs, to: toMs, text };
}

function timeIn(name: string, value: JsonObject[string], edge: 'first' | 'last'): number {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const timeMs = parseQueryTime(text, edge);
  if (timeMs === null) throw badRequest(`${name}: ${explainQueryTime(text)}`);
  return timeMs;
}
