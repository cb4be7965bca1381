/**
 * The classes of a server's requests and answers. Express turns each of Node's into its own kind by giving it another
 * prototype, which costs more than all else on the way to a handler (9.7 µs and 7.9 kB, where a pair of them costs 0.6 µs
 * and 1.2 kB); these are of its kind from the start.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Express } from 'express';
import { discardSlowly } from './leftover.js';
import { useOriginForm } from './target.js';
import { continueParsing, isWebSocketHandshake } from './upgrade.js';

export interface Kinds {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
  /** From now on they are what the app makes of them. */
  follow(app: Express): void;
}

/** The constructor as Node calls it. */
const NodeResponse = ServerResponse as unknown as new <Asked extends IncomingMessage>(
  request: Asked,
  options: object,
) => ServerResponse<Asked>;

export function createKinds(): Kinds {
  class ApiRequest extends IncomingMessage {
    private asksForUpgrade = false;
    /** Node calls it for a body that nobody began to read, and would read that as fast as it comes. */
    _dump(): void {
      if (!this.complete) discardSlowly(this);
    }
    /** Node sets it as it finds a request to ask, and hands the connection over where it is true. */
    get upgrade(): boolean {
      if (!this.asksForUpgrade || !isWebSocketHandshake(this)) return false;
      useOriginForm(this);
      return true;
    }
    set upgrade(asks: boolean | null) {
      if (asks && !this.asksForUpgrade) continueParsing(this);
      // Node sets it to null before there are fields.
      if (asks !== null) this.asksForUpgrade = asks;
    }
  }
  class ApiResponse<Asked extends IncomingMessage> extends NodeResponse<Asked> {
    // The first to see a request whole: before it is told to anyone.
    constructor(request: Asked, options: object) {
      super(request, options);
      useOriginForm(request);
    }
  }
  return {
    ...{ IncomingMessage: ApiRequest, ServerResponse: ApiResponse as unknown as typeof ServerResponse },
    follow(app) {
      Object.setPrototypeOf(ApiRequest.prototype, app.request);
      Object.setPrototypeOf(ApiResponse.prototype, app.response);
      // What the app would give each one it has already.
      Object.assign(app, { request: ApiRequest.prototype, response: ApiResponse.prototype });
    },
  };
}
