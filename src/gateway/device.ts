/** Which device a connection is of, and whether it still may be: by the object's own password, or by a token. */
import { setTimeout as wait } from 'node:timers/promises';
import type { DeviceSecrets } from '../auth/device-secret.js';
import type { Identify } from '../auth/identify.js';
import type { Database } from '../db/connect.js';
import type { DeviceRecord } from '../db/devices.js';
import { getEntity } from '../db/entities.js';
import type { ModelFinder } from '../db/models.js';
import { toApiError, tooManyRequests, unauthorized } from '../errors.js';
import { mayCall, scopeOf } from '../model/access.js';
import { LIMITS } from '../model/limits.js';
import type { Declarations } from '../model/model.js';
import { namesObject } from '../model/own-id.js';
import { builtInStore } from '../model/stores.js';
import type { Failures } from './failures.js';
import { REPLACEMENT } from './topics.js';

export interface DeviceParts {
  readonly database: Database;
  readonly models: ModelFinder;
  readonly identify: Identify;
  readonly deviceSecrets: DeviceSecrets;
}

export interface DeviceFinding {
  /** The device of an object named by `_id` or own id; null when there is none. */
  readonly findDevice: (key: string) => Promise<DeviceRecord | null>;
}

/** What a device says of itself. */
export interface Claim {
  readonly clientId: string;
  readonly username: string | null;
  readonly password: string;
  readonly address: string;
}

/** A device that proved to be one. */
export interface Device {
  readonly record: DeviceRecord;
  readonly declared: Declarations;
  /** The token it came with; null where that was the object's password. */
  readonly token: DeviceToken | null;
}

export interface DeviceToken {
  readonly id: string;
  readonly userId: string;
  readonly expiresAtMs: number;
}

const OBJECTS = builtInStore('objects');

/** The device that a claim is of. Throws 401, the same for all that is wrong, 429 and later after too many failures, or 503. */
export async function checkClaim(
  parts: DeviceParts & DeviceFinding & { failures: Failures },
  claim: Claim,
): Promise<Device> {
  const device = await findProven(parts, claim);
  if (device !== null) return device;
  if (!parts.failures.add(claim.clientId, claim.address)) throw unauthorized();
  await wait(LIMITS.mqttRefusalDelayMs);
  throw tooManyRequests(LIMITS.loginFailureWindowMs / 1_000, 'too many failed logins');
}

/** The same claim again, later: null when it would not be taken any more. Throws 503. */
export async function findProven(parts: DeviceParts & DeviceFinding, claim: Claim): Promise<Device | null> {
  const { clientId } = claim;
  if (clientId.length > LIMITS.idCharacters || !clientId.isWellFormed()) return null;
  // Names that are not UTF-8 are all alike.
  if (`${clientId}${claim.username}`.includes(REPLACEMENT)) return null;
  const record = await parts.findDevice(clientId);
  const isOwn = parts.deviceSecrets.fits(record?.password ?? null, claim.password);
  const isNamed = record === null || record.username === null || record.username === claim.username;
  const knowsPassword = isOwn && isNamed;
  const token = knowsPassword ? null : await findToken(parts, record, claim.password);
  if (record === null || !record.isActive || (!knowsPassword && token === null)) return null;
  return { record, declared: await parts.models.declarationsOf(record.modelId), token };
}

/** The token, when its user may send packets of this object with it. */
async function findToken(
  { database, identify }: DeviceParts,
  record: DeviceRecord | null,
  text: string,
): Promise<DeviceToken | null> {
  const caller = text.split('.').length === 3 ? await identify({ authorization: text }) : null;
  if (record === null || caller === null || caller.token === null) return null;
  const { objectId, ownId } = record;
  // What the caller's own object is called means that object, whoever has the id meanwhile.
  const isOthers = caller.object?.ownId === ownId && caller.object.objectId !== objectId;
  const names = isOthers || !namesObject(ownId) ? [objectId] : [objectId, ownId];
  if (!names.some((name) => mayCall(caller, 'POST', ['objects', name, 'packets']))) return null;
  try {
    await getEntity(database, OBJECTS, scopeOf(caller), objectId);
  } catch (error) {
    if (toApiError(error).status === 404) return null;
    throw error;
  }
  return { ...caller.token, userId: caller.userId };
}
