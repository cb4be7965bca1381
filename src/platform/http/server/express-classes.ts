/**
 * Request and response classes for the HTTP server. Express changes the prototype of every request and response, which costs
 * more than the rest of the dispatch (9.7 µs and 7.9 kB, where creating the pair costs 0.6 µs and 1.2 kB). Instances of these
 * classes have Express' prototypes from the start.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import { discardSlowly } from '../unread-bodies.js';
import { useOwnTarget } from './request-target.js';
import { setResponseOn } from './response-tracking.js';
import { continueParsing, isWebSocketHandshake } from './upgrades.js';

export interface ExpressClasses {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
  /** Makes the classes inherit from the app's request and response. */
  follow(app: Express): void;
}

/** The constructor as Node calls it: its type declarations omit the options. */
const NodeResponse = ServerResponse as unknown as new <Request extends IncomingMessage>(
  request: Request,
  options: object,
) => ServerResponse<Request>;

/** `basePath` is removed from the addresses of requests: `/vigil`, or empty. */
export function createExpressClasses(basePath = ''): ExpressClasses {
  class ApiRequest extends IncomingMessage {
    private requestsUpgrade = false;
    /** Node calls this for an unread body. Its own implementation would read the body at full speed. */
    _dump(): void {
      if (!this.complete) discardSlowly(this);
    }
    /** Node sets this when a request has an `Upgrade` header, and hands the connection over if it reads true. */
    get upgrade(): boolean {
      if (!this.requestsUpgrade) return false;
      useOwnTarget(this, basePath);
      return isWebSocketHandshake(this);
    }
    set upgrade(value: boolean | null) {
      if (value && !this.requestsUpgrade) continueParsing(this);
      // Node's constructor sets null before the fields of this class exist.
      if (value !== null) this.requestsUpgrade = value;
    }
  }
  class ApiResponse<Request extends IncomingMessage> extends NodeResponse<Request> {
    // Node creates the response as soon as the headers are complete, before it emits 'request'.
    constructor(request: Request, options: object) {
      super(request, options);
      useOwnTarget(request, basePath);
    }
    // Node calls these two when the earlier responses of the connection are finished, and when this one is.
    override assignSocket(socket: Socket): void {
      setResponseOn(socket, this);
      super.assignSocket(socket);
    }
    override detachSocket(socket: Socket): void {
      setResponseOn(socket, null);
      super.detachSocket(socket);
    }
  }
  return {
    IncomingMessage: ApiRequest,
    ServerResponse: ApiResponse as unknown as typeof ServerResponse,
    follow(app) {
      Object.setPrototypeOf(ApiRequest.prototype, app.request);
      Object.setPrototypeOf(ApiResponse.prototype, app.response);
      // Express then finds the prototypes already set and changes nothing.
      Object.assign(app, { request: ApiRequest.prototype, response: ApiResponse.prototype });
    },
  };
}
