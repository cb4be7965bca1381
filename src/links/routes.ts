/** Routes: create, list and revoke the share links of an object. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { Accounts } from '../accounts/accounts.js';
import { isInForce, revokeToken } from '../accounts/accounts.js';
import { storeToken } from '../accounts/login.js';
import type { Passwords } from '../accounts/passwords.js';
import { findParent } from '../accounts/user-hooks.js';
import type { Caller } from '../core/access.js';
import { type Entity, isId } from '../core/entity.js';
import { conflict, forbidden, notFound, unauthorized } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { LINK_HISTORIES, type LinkRequest, mayShare, parseLinkRequest } from '../core/link.js';
import { isValidOwnId } from '../core/own-id.js';
import { builtInStore } from '../core/stores.js';
import { inSequence } from '../entities/in-sequence.js';
import { getEntity } from '../entities/read.js';
import { newId, removeEntity } from '../entities/write.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { ENTITY_KEY, ID, idParameter } from '../platform/http/parameters.js';
import { sendArray, sendEntity, sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { COUNT, every, literal, SUCCESS, TIME } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { countLinksOfObject, countLinksOfUser, isLinkOf, type Link, listLinks } from './link-store.js';
import { createSecret, hashOf } from './secret.js';

export interface LinkDeps extends BodyDeps {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly invalidate: (store: string, id: string) => void;
  readonly now: () => number;
}

const OBJECTS = builtInStore('objects');
const TOKENS = builtInStore('tokens');

const FIELDS = z.array(z.string()).max(LIMITS.linkFields).nullable();
const HISTORY = z.enum(LINK_HISTORIES);

const LINK_REQUEST = z
  .object({
    name: z.string().max(LIMITS.nameCharacters).describe('What its visitors read above the values'),
    expiresIn: literal({
      type: ['string', 'number'],
      description: 'A duration such as `3 days`, or milliseconds; one day by default',
    }).optional(),
    fields: FIELDS.optional().describe(
      'The parameters of packets, and fields of the object, that it shows; `null`: all parameters, `name` and `status`',
    ),
    history: HISTORY.optional().describe('The past packets that it shows; `none` by default'),
    pin: z
      .string()
      .regex(/^\d{4,12}$/)
      .nullable()
      .optional()
      .describe('Digits that a visitor has to enter'),
  })
  .meta({ id: 'LinkRequest' });

const LINK = z
  .object({
    _id: ID,
    name: z.string(),
    object: ID,
    user: ID.describe('Who created it'),
    time: TIME,
    expiresAt: TIME,
    fields: FIELDS,
    history: HISTORY,
    hasPin: z.boolean(),
    views: COUNT.describe('How often it was opened'),
    lastViewed: TIME.nullable(),
  })
  .meta({ id: 'Link' });

const LINKS = '/api/v1/objects/:id/links';

const createLink = defineRoute({
  method: 'POST',
  path: LINKS,
  name: 'createLink',
  tag: 'links',
  summary: 'Creates a share link of an object; its secret is answered once',
  docs: 'Creates a [share link](share-links.md) of an object: `{name, expiresIn, fields, history, pin}`; its `secret` is answered once',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY },
  body: {
    schema: LINK_REQUEST,
    example: { name: 'Delivery to Dachau', expiresIn: '8 h', fields: ['lat', 'lon', 'speed'] },
    isRequired: true,
    limitBytes: LIMITS.linkBodyBytes,
  },
  answer: { description: 'The link with its secret', schema: every(LINK, SUCCESS, z.object({ secret: z.string() })) },
  errors: [404, 409],
  handle: (deps: LinkDeps) => async (req, res) => {
    const caller = callerOf(res);
    const object = await getObject(deps, req, res);
    const request = parseLinkRequest(req.body);
    const ownId = typeof object.id === 'string' && isValidOwnId(object.id) ? object.id : null;
    if (!mayShare(caller, { objectId: object._id, ownId })) {
      throw forbidden('only those may share an object who may read and change it');
    }
    const store = async () => {
      await checkCounts(deps, caller, object._id);
      return storeLink(deps, caller, object, request);
    };
    // A link counts for its user and for its object.
    const ofObject = () => inSequence(`links of ${object._id}`, store);
    const { secret, link } = await inSequence(`links by ${caller.userId}`, ofObject);
    // If the caller's access has ended meanwhile, the new token was not among the revoked ones.
    if (!(await isInForce(deps.database, caller))) {
      await revokeToken(deps.database, link._id);
      throw unauthorized();
    }
    res.locals.action = 'link created';
    res.locals.entityId = link._id;
    sendEntity(res, { ...link, fields: link.fields && [...link.fields], secret });
  },
});

const listLinksOfObject = defineRoute({
  method: 'GET',
  path: LINKS,
  name: 'listLinks',
  tag: 'links',
  summary: 'The share links of an object that have not expired',
  docs: 'The [share links](share-links.md) of an object that have not expired, without their secrets',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  answer: { description: 'The links, the newest first', schema: z.array(LINK).max(LIMITS.linksPerObject) },
  errors: [404],
  handle: (deps: LinkDeps) => async (req, res) => {
    const { _id: objectId } = await getObject(deps, req, res);
    sendArray(res, await listLinks(deps.database, scopeIn(res), { objectId, nowMs: deps.now() }));
  },
});

const revokeLink = defineRoute({
  method: 'DELETE',
  path: `${LINKS}/:linkID`,
  name: 'revokeLink',
  tag: 'links',
  summary: 'Revokes a share link, and closes the pages that show it',
  docs: 'Revokes a [share link](share-links.md), and closes the pages that show it',
  auth: 'permission',
  limit: 'request',
  params: { id: ENTITY_KEY, linkID: idParameter('The `_id` of the link') },
  answer: { description: 'The link is revoked', schema: SUCCESS },
  errors: [404],
  handle: (deps: LinkDeps) => async (req, res) => {
    const { _id: objectId } = await getObject(deps, req, res);
    const linkId = String(req.params.linkID).toLowerCase();
    const scope = scopeIn(res);
    if (!isId(linkId) || !(await isLinkOf(deps.database, scope, objectId, linkId))) throw notFound();
    await removeEntity(deps.database, TOKENS, scope, linkId);
    deps.invalidate('tokens', linkId);
    res.locals.action = 'link revoked';
    res.locals.entityId = linkId;
    sendJson(res, JSON.stringify({ success: true }));
  },
});

export const LINK_ROUTES = [listLinksOfObject, createLink, revokeLink];

const getObject = ({ database }: LinkDeps, req: Request, res: Response): Promise<Entity> =>
  getEntity(database, OBJECTS, scopeIn(res), String(req.params.id));

async function checkCounts({ database, now }: LinkDeps, { userId }: Caller, objectId: string): Promise<void> {
  const [ofObject, ofUser] = await Promise.all([
    countLinksOfObject(database, objectId, now()),
    countLinksOfUser(database, userId, now()),
  ]);
  if (ofObject >= LIMITS.linksPerObject) {
    throw conflict(`the object has ${LIMITS.linksPerObject} links: revoke one first`);
  }
  if (ofUser >= LIMITS.linksPerUser) throw conflict(`you have ${LIMITS.linksPerUser} links: revoke one first`);
}

/** Stores a link as a token that reads this object only. */
async function storeLink(
  deps: LinkDeps,
  caller: Caller,
  { _id: objectId }: Entity,
  { name, lifetimeMs, fields, history, pin }: LinkRequest,
): Promise<{ secret: string; link: Link }> {
  const id = newId();
  const secret = createSecret(id);
  const pinHash = pin === null ? null : await deps.passwords.hash(pin);
  const { user, time, expiresAt } = await storeToken(deps, caller, {
    id,
    name,
    scopes: [`GET /objects/${objectId}`],
    lifetimeMs,
    parent: await findParent(deps.database, caller),
    fields: {
      _link: {
        object: objectId,
        fields: fields && [...fields],
        history,
        secretHash: hashOf(secret),
        pinHash,
        views: 0,
        lastViewed: null,
      },
    },
  });
  const common = { _id: id, name, object: objectId, user: String(user), time, expiresAt: Number(expiresAt) };
  const link = { ...common, fields, history, hasPin: pin !== null, views: 0, lastViewed: null };
  return { secret, link: link as Link };
}
