/** Knows the response in progress of each connection, including pipelined requests. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const inProgress = new WeakMap<Socket, ServerResponse | null>();

/** The response that is being sent on a connection; null between requests. */
export const responseOn = (socket: Socket): ServerResponse | null => inProgress.get(socket) ?? null;

/** Called by the response class when Node assigns a connection to a response, and when it takes it away. */
export function setResponseOn(socket: Socket, response: ServerResponse | null): void {
  inProgress.set(socket, response);
}
