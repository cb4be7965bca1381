/** Checks the old password of a user who sets a new one. */

import type { Caller } from '../core/access.js';
import { badRequest, toApiError } from '../core/errors.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findLogin } from './accounts.js';
import type { Attempts } from './attempts.js';
import { checkLogin } from './login.js';
import type { Passwords } from './passwords.js';

export interface OldPassword {
  readonly password: string;
  readonly address: string;
  /** Receives the security event of a refused attempt. */
  readonly onRefused: (action: string) => void;
}

const WRONG = 'oldPassword: wrong password';

/**
 * Returns the stored hash that the old password matches; the new password is stored only while that hash is still stored.
 * Failures count as failed logins. Throws a 400 that names the field, or 429.
 */
export async function checkOwnPassword(
  deps: { database: Database; passwords: Passwords; attempts: Attempts },
  { userId, login }: Pick<Caller, 'userId' | 'login'>,
  { password, address, onRefused }: OldPassword,
): Promise<string> {
  const { database, passwords } = deps;
  try {
    await checkLogin(deps, { login, password }, address);
  } catch (error) {
    const { status } = toApiError(error);
    if (status === 429) onRefused('login refused');
    if (status !== 401) throw error;
    onRefused('login failed');
    throw badRequest(WRONG);
  }
  // Read again: the check may have stored a newer hash, or an administrator may have changed the login or password.
  const present = await findLogin(database, login);
  const isOwn = present?.userId === userId;
  if (isOwn && (await passwords.withHashSlot((verify) => verify(present.passwordHash, password))))
    return present.passwordHash;
  throw badRequest(WRONG);
}
