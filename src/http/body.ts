/** Request bodies: JSON of a bounded size; at login also a form. */
import express, { type Request, type RequestHandler } from 'express';
import { unsupportedMediaType } from '../errors.js';
import { LIMITS } from '../model/limits.js';

const isJson = (req: { headers: { 'content-type'?: string } }): boolean =>
  /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');
const isForm = (req: Request): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');

/** Whether there is a body at all: a length of 0, also with a content type, is none. */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

/** A JSON body into `req.body`; none leaves it undefined. Throws 400 (malformed), 413, 415. */
export function readJson(limitBytes: number): RequestHandler[] {
  return [refuseUnless((req) => isJson(req)), express.json({ limit: limitBytes, inflate: false, type: () => true })];
}

/** A login body: JSON, or the form that browsers and command lines send. */
export function readLogin(): RequestHandler[] {
  return [
    refuseUnless((req) => isJson(req) || isForm(req)),
    express.json({ limit: LIMITS.loginBodyBytes, inflate: false, type: (req) => isJson(req as Request) }),
    express.urlencoded({ limit: LIMITS.loginBodyBytes, inflate: false, extended: false, parameterLimit: 20 }),
  ];
}

function refuseUnless(isFit: (req: Request) => boolean): RequestHandler {
  return (req, _res, next) => {
    if (hasBody(req) && !isFit(req))
      throw unsupportedMediaType('the body must be JSON: Content-Type: application/json');
    next();
  };
}
