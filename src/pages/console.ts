/**
 * The web console: one page for browsers at every address of the console, and the files that it loads. Programs receive JSON at
 * the same addresses. The files are the same for everyone, are read once, and need no login.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Request, RequestHandler, Response } from 'express';
import { type ConfiguredMap, type MapInUse, originsOf, toMapInUse } from '../settings/map.js';
import type { Settings } from '../settings/settings-store.js';
import { createMapTiles, describeMap, TILES_PATH } from './console-map.js';

export interface ConsoleDeps {
  /** The page shows these settings to users who connect devices; null if MQTT is off. */
  readonly mqtt: { readonly port: number; readonly tls: object | null } | null;
  /** The path of another site that the console is served below: `/vigil`, or empty. */
  readonly basePath: string;
  /** Whether addresses can be found; null if they cannot. */
  readonly geocoder: object | null;
  /** The map that the environment names. */
  readonly map: ConfiguredMap;
  /** The map that an administrator has chosen. */
  readonly settings: Pick<Settings, 'map'>;
}

interface File {
  readonly type: string;
  /** By content coding. */
  readonly bytes: ReadonlyMap<string, Buffer>;
}

interface Built {
  readonly page: string;
  /** What browsers load together with the page at some addresses: a regular expression, and HTML. */
  readonly preloads: readonly { readonly path: string; readonly links: string }[];
  readonly files: ReadonlyMap<string, File>;
}

// The second folder is used if the service runs from its sources.
const FOLDERS = ['../../../console/', '../../../dist/console/'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const FILES = '/console/';
const PAGES =
  /^\/(?:s|log|wall\/[^/]+|nearest|compare|reports|alarms(?:\/[^/]+)?|welcome|geofences|(?:models|rules)(?:\/[^/]+)?|data(?:\/[^/]+)?|objects\/[^/]+(?:\/(?:live|history|commands|settings))?|access(?:\/\w+)?|account(?:\/\w+)?)?\/?$/;
/** It may act for all pages below its own address, so it lies above them. */
const SERVICE_WORKER = '/service-worker.js';
/** Nobody mistypes these by hand. */
const NO_PAGES = /^\/(?:api|console)\//i;
/** File names contain a digest of the content, so the content never changes. */
const FOREVER = 'public, max-age=31536000, immutable';

/** `origins`: each after a space. */
const toPolicy = (origins: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: blob:${origins}`,
    `connect-src 'self'${origins}`,
    "worker-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

export interface Console {
  /** Answers browsers. Everything else, and everything if the console was not built, goes on to the API. */
  readonly pages: RequestHandler;
  /** Answers browsers that ask for an address which nobody has, with a page that says so. */
  readonly unknownPages: RequestHandler;
}

export function createConsole(deps: ConsoleDeps): Console {
  const built = readBuilt();
  const pass: RequestHandler = (_req, _res, next) => next();
  if (built === null) return { pages: pass, unknownPages: pass };
  const pagesNow = createPagesNow(built, deps);
  const sendTiles = createMapTiles(deps.map.tilesFile);
  const answer = (req: Request, res: Response): void => {
    const { policy, pageAt } = pagesNow();
    res.setHeader('Content-Security-Policy', policy);
    sendPage(res, pageAt(req.path));
  };
  const pages: RequestHandler = (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') next();
    else if (req.path === TILES_PATH && sendTiles !== null) return sendTiles(req, res, next);
    else if (req.path.startsWith(FILES) || req.path === SERVICE_WORKER) {
      const isWorker = req.path === SERVICE_WORKER;
      res.setHeader('Content-Security-Policy', pagesNow().policy);
      const file = built.files.get(req.path.slice((isWorker ? '/' : FILES).length));
      if (file === undefined) next();
      else sendFile(req, res, file, isWorker ? 'no-cache' : FOREVER);
    } else if (PAGES.test(req.path)) {
      res.vary('Accept');
      if (wantsPage(req)) answer(req, res);
      else next();
    } else next();
  };
  const unknownPages: RequestHandler = (req, res, next) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    if (isRead && !NO_PAGES.test(req.path) && wantsPage(req)) answer(req, res.status(404).vary('Accept'));
    else next();
  };
  return { pages, unknownPages };
}

interface Pages {
  readonly policy: string;
  readonly pageAt: (path: string) => Buffer;
}

/** The pages with the map of now; they are made again when an administrator has chosen another one. */
function createPagesNow(built: Built, deps: ConsoleDeps): () => Pages {
  let choice = deps.settings.map();
  const make = (): Pages => {
    const map = toMapInUse(deps.map, choice);
    const origins = originsOf(map).map((origin) => ` ${origin}`);
    return { policy: toPolicy(origins.join('')), pageAt: createPages(built, deps, map) };
  };
  let pages = make();
  return () => {
    const chosen = deps.settings.map();
    if (chosen === choice) return pages;
    choice = chosen;
    pages = make();
    return pages;
  };
}

/** The page at an address, with what browsers load together with it there. */
function createPages(
  { page, preloads }: Built,
  { mqtt, geocoder, basePath }: ConsoleDeps,
  map: MapInUse,
): (path: string) => Buffer {
  const filled = page
    .replace('{{mqtt}}', describeMqtt(mqtt))
    .replace('{{map}}', () => describeMap(map, basePath))
    .replace('{{geocoder}}', geocoder === null ? '' : '1');
  const toPage = (links: string): Buffer =>
    Buffer.from(filled.replace('{{links}}', links).replaceAll('{{base}}', basePath));
  const plain = toPage('');
  const special = preloads.map(({ path, links }) => [new RegExp(path), toPage(links)] as const);
  return (path) => special.find(([form]) => form.test(path))?.[1] ?? plain;
}

const readFolder = (): string | null => FOLDERS.find((folder) => existsSync(`${folder}console.json`)) ?? null;

function readBuilt(): Built | null {
  const folder = readFolder();
  if (folder === null) return null;
  const { page, preloads, files } = JSON.parse(readFileSync(`${folder}console.json`, 'utf8'));
  const read = ({ name, type }: { name: string; type: string }): [string, File] => {
    const coded = Object.entries({ br: '.br', gzip: '.gz', identity: '' });
    const bytes = coded.map(([coding, end]) => [coding, readFileSync(`${folder}${name}${end}`)] as const);
    return [name, { type, bytes: new Map(bytes) }];
  };
  return { page, preloads, files: new Map(files.map(read)) };
}

const describeMqtt = (mqtt: ConsoleDeps['mqtt']): string =>
  mqtt === null ? '' : `${mqtt.tls === null ? 'mqtt' : 'mqtts'}:${mqtt.port}`;

/** Browsers name HTML first; programs that accept anything receive JSON, as everywhere. */
const wantsPage = (req: Request): boolean => req.accepts(['application/json', 'text/html']) === 'text/html';

function sendPage(res: Response, page: Buffer): void {
  res.setHeader('Cache-Control', 'no-cache');
  send(res, 'text/html; charset=utf-8', page);
}

function sendFile(req: Request, res: Response, { type, bytes }: File, caching: string): void {
  // Browsers offer Brotli only over TLS and to their own machine.
  const coding = ['br', 'gzip'].find((name) => req.acceptsEncodings(name)) ?? 'identity';
  res.vary('Accept-Encoding');
  res.setHeader('Cache-Control', caching);
  if (coding !== 'identity') res.setHeader('Content-Encoding', coding);
  send(res, `${type}; charset=utf-8`, bytes.get(coding) as Buffer);
}

function send(res: Response, type: string, bytes: Buffer): void {
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', bytes.length);
  res.end(bytes);
}
