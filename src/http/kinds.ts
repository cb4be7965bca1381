/**
 * The classes of a server's requests and answers. Express turns each of Node's into its own kind by giving it another
 * prototype, which costs more than all else on the way to a handler (9.7 µs and 7.9 kB, where a pair of them costs 0.6 µs
 * and 1.2 kB); these are of its kind from the start.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Express } from 'express';

export interface Kinds {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
  /** From now on they are what the app makes of them. */
  follow(app: Express): void;
}

export function createKinds(): Kinds {
  class ApiRequest extends IncomingMessage {}
  class ApiResponse<Asked extends IncomingMessage> extends ServerResponse<Asked> {}
  return {
    ...{ IncomingMessage: ApiRequest, ServerResponse: ApiResponse },
    follow(app) {
      Object.setPrototypeOf(ApiRequest.prototype, app.request);
      Object.setPrototypeOf(ApiResponse.prototype, app.response);
      // What the app would give each one it has already.
      Object.assign(app, { request: ApiRequest.prototype, response: ApiResponse.prototype });
    },
  };
}
