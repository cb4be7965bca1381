/** Authenticates devices by the password of their object or by a token. */

import type { DevicePasswords } from '../../accounts/device-passwords.js';
import type { Identify } from '../../accounts/identify.js';
import { type Caller, mayCallObject, objectNamed, scopeOf } from '../../core/access.js';
import { toApiError, tooManyRequests, unauthorized } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Declarations } from '../../core/model.js';
import { toOwnId } from '../../core/own-id.js';
import { builtInStore } from '../../core/stores.js';
import { getEntity } from '../../entities/read.js';
import type { ModelFinder } from '../../packets/models.js';
import { clock } from '../../platform/clock.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import type { DeviceRecord } from '../devices.js';
import { REPLACEMENT } from '../topics.js';
import type { ConnectFailures } from './connect-failures.js';

export interface DeviceDeps {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly identify: Identify;
  readonly devicePasswords: DevicePasswords;
}

export interface DeviceFinding {
  /** Finds a device by the `_id` or own id of its object; null if there is none. */
  readonly findDevice: (key: string) => Promise<DeviceRecord | null>;
}

export interface ConnectCredentials {
  readonly clientId: string;
  readonly username: string | null;
  readonly password: string;
  readonly address: string;
}

/** An authenticated device. */
export interface Device {
  readonly record: DeviceRecord;
  readonly declared: Declarations;
  /** The token of its credentials; null if it used the object's password. */
  readonly token: DeviceToken | null;
}

export interface DeviceToken {
  readonly id: string;
  readonly userId: string;
  readonly expiresAtMs: number;
}

const OBJECTS = builtInStore('objects');

/** Authenticates a device. Throws 401 without details, a delayed 429 after too many failures, or 503. */
export async function checkCredentials(
  deps: DeviceDeps & DeviceFinding & { failures: ConnectFailures },
  credentials: ConnectCredentials,
): Promise<Device> {
  const device = await findAuthenticated(deps, credentials);
  if (device !== null) return device;
  if (!deps.failures.add(credentials.clientId, credentials.address)) throw unauthorized();
  await clock.wait(LIMITS.mqttRefusalDelayMs);
  throw tooManyRequests(LIMITS.loginFailureWindowMs / 1_000, 'too many failed logins');
}

/** The device of the credentials; null if they are not valid, or not any more. Throws 503. */
export async function findAuthenticated(
  deps: DeviceDeps & DeviceFinding,
  credentials: ConnectCredentials,
): Promise<Device | null> {
  const { clientId } = credentials;
  if (clientId.length > LIMITS.idCharacters || !clientId.isWellFormed()) return null;
  // Decoding makes all invalid UTF-8 names equal.
  if (`${clientId}${credentials.username}`.includes(REPLACEMENT)) return null;
  const caller = await findTokenCaller(deps, credentials.password);
  // The object to which the token is bound, even if another one has its former id by now.
  const bound = caller === null ? null : objectNamed(scopeOf(caller), toOwnId(clientId));
  const record = await deps.findDevice(bound ?? clientId);
  const isOwn = deps.devicePasswords.verify(record?.password ?? null, credentials.password);
  const isNamed = record === null || record.username === null || record.username === credentials.username;
  const knowsPassword = isOwn && isNamed;
  const token = knowsPassword ? null : await checkToken(deps, record, caller);
  if (record === null || !record.isActive || (!knowsPassword && token === null)) return null;
  return { record, declared: await deps.models.declarationsOf(record.modelId), token };
}

async function findTokenCaller({ identify }: DeviceDeps, text: string): Promise<Caller | null> {
  return text.split('.').length === 3 ? identify({ authorization: text }) : null;
}

/** The token, if it permits its user to send packets for this object. */
async function checkToken(
  { database }: DeviceDeps,
  record: DeviceRecord | null,
  caller: Caller | null,
): Promise<DeviceToken | null> {
  if (record === null || caller === null || caller.token === null) return null;
  if (!mayCallObject(caller, record, 'POST', ['packets'])) return null;
  try {
    await getEntity(database, OBJECTS, scopeOf(caller), record.objectId);
  } catch (error) {
    if (toApiError(error).status === 404) return null;
    throw error;
  }
  return { ...caller.token, userId: caller.userId };
}
