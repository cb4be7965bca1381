/** Users with a built-in role, for pages of other people than the administrator. */
import { randomBytes } from 'node:crypto';
import type { TestService } from '../fixture.js';

export async function createUser(
  service: TestService,
  role: string,
  more: object = {},
): Promise<{ login: string; password: string }> {
  const user = { login: `${role}-${randomBytes(4).toString('hex')}`, password: 'correct horse battery' };
  const { body: roles } = await service.admin('GET', 'roles');
  const found = (roles as { _id: string; name: string }[]).find(({ name }) => name === role);
  await service.admin('POST', 'users', { ...user, role: found?._id, ...more });
  return user;
}
