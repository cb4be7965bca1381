/**
 * The parts of an instance that commands pass through: their routes, their delivery over MQTT, requests that wait for them and their
 * expiry, connected as `context.ts`, `watching.ts` and `devices/gateway.ts` do. Sockets are left out, and so is presence.
 */
import { EventEmitter } from 'node:events';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { authorize } from '../../src/accounts/authenticate.js';
import type { Identify } from '../../src/accounts/identify.js';
import type { Caches } from '../../src/caches.js';
import { startExpiry } from '../../src/commands/expiry.js';
import { COMMAND_ROUTES } from '../../src/commands/routes.js';
import { createCommandWaiters } from '../../src/commands/waiters.js';
import type { Change } from '../../src/core/change.js';
import { toApiError } from '../../src/core/errors.js';
import { declarationsOf } from '../../src/core/model.js';
import { createDeliverer, type Deliverer } from '../../src/devices/command-delivery.js';
import type { Connection } from '../../src/devices/mqtt/connection.js';
import { NO_LIMITS } from '../../src/devices/mqtt/peer.js';
import { receive } from '../../src/devices/receive.js';
import { COMMANDS_TOPIC, resultTopicOf } from '../../src/devices/topics.js';
import { clock } from '../../src/platform/clock.js';
import { createFairness } from '../../src/platform/fairness.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';

/** A request to one of the routes of commands. */
export interface CommandCall {
  readonly route: 'sendCommand' | 'listCommandsOfObject' | 'endCommand';
  readonly credential: string;
  readonly objectId: string;
  /** What the path names after the object. */
  readonly more?: { readonly command?: string; readonly commandID?: string };
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export interface Answer {
  readonly status: number;
  readonly location: string;
  readonly body: unknown;
}

/** A message to a device, as it goes over the wire. */
export interface Message {
  readonly messageId: number;
  readonly topic: string;
  readonly payload: string;
}

/** The device's end of a connection. */
export interface DeviceEnd {
  /** Unique for each connection. */
  readonly id: string;
  readonly objectId: string;
  /** `onSent` is to be called with whether the message went out. */
  write(message: Message, onSent: (isSent: boolean) => void): void;
}

export interface Link {
  /** Returns whether the instance waited for it. */
  confirm(messageId: number, reasonCode: number): boolean;
  /** The instance learns that the connection has ended. */
  end(): void;
}

export interface CommandParts {
  apply(change: Change): void;
  reset(): void;
  start(): void;
  call(call: CommandCall): Promise<Answer>;
  connect(end: DeviceEnd): Link;
  /** A result that the device publishes. Throws 404, 409, 503. */
  publishResult(objectId: string, commandId: string, outcome: object): Promise<void>;
}

export interface CommandPartsDeps {
  readonly database: Database;
  readonly caches: Caches;
  readonly identify: Identify;
  readonly log: Logger;
}

export function createCommandParts(deps: CommandPartsDeps): CommandParts {
  const { database, caches, identify, log } = deps;
  const { now } = clock;
  const commandWaiters = createCommandWaiters();
  const deliverer = createDeliverer({ database, log, now });
  const connections = new Map<string, Connection>();
  const { listQueues, answerBudget } = createFairness();
  const lists = { listDatabase: database, listQueues, answerBudget };
  const routes = { database, models: caches.models, commandWaiters, identify, now, ...lists };
  return {
    apply(change) {
      commandWaiters.apply(change);
      const connection = connections.get(change.objectId ?? '');
      if (change.store !== 'commands' || change.after?.status !== 'queued') return;
      if (connection !== undefined) deliverer.wake(connection);
    },
    reset() {
      commandWaiters.wakeAll();
      for (const connection of connections.values()) deliverer.deliver(connection);
    },
    start: () => void startExpiry({ database, log, now }),
    async call(call) {
      try {
        return await callRoute(routes as never, identify, call);
      } catch (error) {
        const { status } = toApiError(error);
        if (status === 500) throw error;
        return { status, location: '', body: null };
      }
    },
    connect: (end) => connect(deliverer, connections, end),
    publishResult(objectId, commandId, outcome) {
      const message = { topic: resultTopicOf(commandId), payload: Buffer.from(JSON.stringify(outcome)) };
      const received = { ...message, messageId: 1, maybeDuplicate: false, signal: null };
      return receive({ database, now } as never, { objectId } as never, declarationsOf(null), received);
    },
  };
}

/** As the router does: the caller is authorized first. */
async function callRoute(deps: never, identify: Identify, call: CommandCall): Promise<Answer> {
  const route = COMMAND_ROUTES.find(({ name }) => name === call.route);
  if (route === undefined) throw new Error(`there is no route ${call.route}`);
  const params = { id: call.objectId, ...call.more };
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => (params as Record<string, string>)[name] ?? '');
  const socket = Object.assign(new EventEmitter(), { destroyed: false });
  const app = { locals: { basePath: '' } };
  const headers = { authorization: call.credential };
  const req = { method: route.method, baseUrl: '', path, originalUrl: path, headers, params, socket, app };
  Object.assign(req, { query: call.query ?? {}, body: call.body });
  const sent = { location: '', body: null as unknown };
  const res = Object.assign(new EventEmitter(), {
    locals: {},
    statusCode: 200,
    req,
    app,
    destroyed: false,
    closed: false,
    vary: () => undefined,
    setHeader: (name: string, value: unknown) => {
      if (name === 'Location') sent.location = String(value);
    },
    end: (body: Buffer | string) => {
      sent.body = JSON.parse(String(body));
      res.emit('close');
    },
  });
  const request = req as unknown as Request;
  const response = res as unknown as Response;
  await authorize(identify, request, response);
  await route.handle(deps)(request, response, () => undefined);
  return { status: res.statusCode, ...sent };
}

function connect(deliverer: Deliverer, connections: Map<string, Connection>, end: DeviceEnd): Link {
  let isEnded = false;
  const peer = {
    version: 5,
    limits: NO_LIMITS,
    encode: (packet: object) => Buffer.from(JSON.stringify(packet)),
    write(bytes: Buffer, onSent: (isSent: boolean) => void = () => undefined) {
      if (isEnded) onSent(false);
      else end.write(JSON.parse(String(bytes)), onSent);
    },
  };
  const connection = {
    id: end.id,
    peer,
    filters: new Map([[`${COMMANDS_TOPIC}/#`, 1]]),
    device: { record: { objectId: end.objectId }, declared: declarationsOf(null) },
    sending: null,
  } as unknown as Connection;
  connections.set(end.objectId, connection);
  deliverer.deliver(connection);
  return {
    confirm(messageId, reasonCode) {
      const isAwaited = !isEnded && connection.sending === messageId;
      if (!isEnded) deliverer.confirm(connection, messageId, reasonCode);
      return isAwaited;
    },
    end() {
      if (isEnded) return;
      isEnded = true;
      if (connections.get(end.objectId) === connection) connections.delete(end.objectId);
      deliverer.end(connection);
    },
  };
}
