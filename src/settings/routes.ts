/** Routes: the settings of the installation, for the administrators of its root group. */
import type { RequestHandler, Response } from 'express';
import { z } from 'zod';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import { badRequest, forbidden } from '../core/errors.js';
import { parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf } from '../platform/http/caller.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, SUCCESS } from '../platform/http/schema.js';
import {
  type ConfiguredMap,
  KINDS_IN_USE,
  MAP_CHOICE,
  MAP_SOURCES,
  type MapInUse,
  parseMapChoice,
  toMapInUse,
} from './map.js';
import type { Settings } from './settings-store.js';

export interface SettingsDeps extends BodyDeps {
  readonly settings: Settings;
  /** What the environment names. */
  readonly map: ConfiguredMap;
  readonly now: () => number;
}

const CHOICE = MAP_CHOICE.nullable().describe('The choice of an administrator; `null` before it');

const IN_USE: z.ZodType<MapInUse> = z
  .strictObject({
    kind: z.enum(KINDS_IN_USE).describe('`file` is a file of tiles on the machine of Vigil, of `MAP_TILES`'),
    url: z.string().nullable(),
    origins: z.array(z.string()).readonly(),
    attribution: z.string().nullable(),
    from: z.enum(MAP_SOURCES).describe('What decides it: environment variables go before the choice'),
    variables: z.array(z.string()).readonly().describe('The environment variables that decide it'),
  })
  .describe('The map that pages of the console show');

const ANSWER = {
  description: 'The settings',
  schema: every(z.object({ map: CHOICE, mapInUse: IN_USE }), SUCCESS),
};

const getSettings = defineRoute({
  method: 'GET',
  path: '/api/v1/settings',
  name: 'getSettings',
  tag: 'settings',
  summary: 'Returns the settings of the installation',
  docs: 'The [settings of the installation](settings.md), for administrators of the root group',
  auth: 'permission',
  limit: 'request',
  answer: ANSWER,
  handle: (deps: SettingsDeps) => forOperators((_req, res) => sendSettings(deps, res)),
});

const changeSettings = defineRoute({
  method: 'PATCH',
  path: '/api/v1/settings',
  name: 'changeSettings',
  tag: 'settings',
  summary: 'Changes settings of the installation',
  docs: 'Changes [settings of the installation](settings.md): `{map}`. Each is replaced as a whole; `null` takes a choice back',
  auth: 'permission',
  limit: 'request',
  before: () => forOperators((_req, _res, next) => next()),
  body: {
    schema: z.object({ map: CHOICE }).partial(),
    example: { map: { kind: 'openfreemap' } },
    limitBytes: LIMITS.settingsBodyBytes,
  },
  answer: ANSWER,
  handle: (deps: SettingsDeps) => async (req, res) => {
    const body = parseObject(req.body ?? {});
    const unknown = Object.keys(body).find((name) => !KNOWN.has(name));
    if (unknown !== undefined) throw badRequest(`${unknown}: no such setting; there is map`);
    if (body.map !== undefined) {
      const choice = body.map === null ? null : parseMapChoice(body.map);
      res.locals.fields = ['map'];
      await deps.settings.changeMap(choice, deps.now());
      res.locals.action = 'settings changed';
    }
    sendSettings(deps, res);
  },
});

/** Those of an answer, which clients send back whole, are ignored. */
const KNOWN: ReadonlySet<string> = new Set(['map', 'mapInUse', 'success']);

export const SETTINGS_ROUTES = [getSettings, changeSettings];

/** Settings concern every tenant, so no tenant's administrator reads or changes them. */
const forOperators =
  (handle: RequestHandler): RequestHandler =>
  (req, res, next) => {
    if (callerOf(res).groupId !== ROOT_GROUP_ID) throw forbidden('only administrators of the root group may do this');
    return handle(req, res, next);
  };

function sendSettings({ settings, map }: SettingsDeps, res: Response): void {
  const choice = settings.map();
  sendJson(res, JSON.stringify({ map: choice, mapInUse: toMapInUse(map, choice), success: true }));
}
