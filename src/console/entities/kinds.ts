/** What the pages of stores show and let people edit, store by store; every other store is edited as JSON. */
import type { Entity } from '../state/api.js';
import type { TextKey } from '../text/language.js';

export interface EntityField {
  readonly name: string;
  readonly text: TextKey;
  /** `reference`: the `_id` of an entity of another store; `lines`: a list of texts; `json`: anything. */
  readonly kind: 'text' | 'password' | 'email' | 'check' | 'reference' | 'lines' | 'json';
  readonly store?: string;
  readonly hint?: TextKey;
  readonly isRequired?: boolean;
  /** Set when the entity is created, and not changed any more. */
  readonly isFixed?: boolean;
}

export interface EntityKind {
  readonly store: string;
  readonly title: TextKey;
  readonly about: TextKey;
  readonly columns: readonly EntityColumn[];
  /** null where entities are written by the service alone. */
  readonly fields: readonly EntityField[] | null;
  readonly isNewestFirst?: boolean;
  /** Whether its entities have fields of their own, which are shown as columns, too. */
  readonly isOpen?: boolean;
  /** Where each entity has a page of its own. */
  readonly page?: string;
}

/** Built-in entities are changed by nobody. */
export const isBuiltIn = ({ _id }: Entity): boolean => _id.startsWith('0000000000000000');

export interface EntityColumn {
  readonly name: string;
  /** Without it, the name is shown. */
  readonly text?: TextKey;
  readonly kind?: 'age' | 'date' | 'reference' | 'list' | 'check';
  readonly store?: string;
}

const NAME: EntityColumn = { name: 'name', text: 'entity.name' };
const CREATED: EntityColumn = { name: 'time', text: 'entity.created', kind: 'date' };
const NAME_FIELD: EntityField = { name: 'name', text: 'entity.name', kind: 'text', isRequired: true };

const USERS: EntityKind = {
  ...{ store: 'users', title: 'access.users', about: 'access.usersAbout' },
  columns: [
    { name: 'login', text: 'login.login' },
    NAME,
    { name: 'role', text: 'entity.role', kind: 'reference', store: 'roles' },
    { name: 'group', text: 'entity.group', kind: 'reference', store: 'groups' },
    { name: 'active', text: 'entity.active', kind: 'check' },
  ],
  fields: [
    { name: 'login', text: 'login.login', kind: 'text', isRequired: true },
    { name: 'name', text: 'entity.name', kind: 'text' },
    { name: 'email', text: 'profile.email', kind: 'email' },
    { name: 'password', text: 'login.password', kind: 'password', hint: 'access.passwordHint' },
    { name: 'role', text: 'entity.role', kind: 'reference', store: 'roles' },
    { name: 'group', text: 'entity.group', kind: 'reference', store: 'groups', isFixed: true },
    { name: 'active', text: 'entity.active', kind: 'check' },
  ],
};

const GROUPS: EntityKind = {
  ...{ store: 'groups', title: 'access.groups', about: 'access.groupsAbout' },
  columns: [NAME, { name: 'parent', text: 'entity.parent', kind: 'reference', store: 'groups' }, CREATED],
  fields: [NAME_FIELD, { name: 'parent', text: 'entity.parent', kind: 'reference', store: 'groups' }],
};

const ROLES: EntityKind = {
  ...{ store: 'roles', title: 'access.roles', about: 'access.rolesAbout' },
  columns: [NAME, { name: 'credentials', text: 'entity.credentials', kind: 'list' }],
  fields: [NAME_FIELD, { name: 'credentials', text: 'entity.credentials', kind: 'lines', hint: 'tokens.scopesHint' }],
};

const TOKENS: EntityKind = {
  ...{ store: 'tokens', title: 'access.tokens', about: 'access.tokensAbout', fields: null, isNewestFirst: true },
  columns: [
    NAME,
    { name: 'user', text: 'sharing.user', kind: 'reference', store: 'users' },
    { name: 'scopes', text: 'entity.credentials', kind: 'list' },
    { name: 'expiresAt', text: 'entity.expires', kind: 'date' },
    { name: 'lastUsed', text: 'entity.lastUsed', kind: 'age' },
  ],
};

const AUDIT: EntityKind = {
  ...{ store: 'audit', title: 'access.audit', about: 'access.auditAbout', fields: null, isNewestFirst: true },
  columns: [
    { name: 'time', text: 'live.time', kind: 'date' },
    { name: 'action', text: 'entity.action' },
    { name: 'login', text: 'login.login' },
    { name: 'address', text: 'entity.address' },
    { name: 'method', text: 'entity.method' },
    { name: 'path', text: 'entity.path' },
    { name: 'count', text: 'entity.count' },
  ],
};

export const ACCESS: readonly EntityKind[] = [USERS, GROUPS, ROLES, TOKENS, AUDIT];

export const MODELS: EntityKind = {
  ...{ store: 'models', title: 'data.models', about: 'data.modelsAbout', page: '/models', fields: [NAME_FIELD] },
  columns: [NAME, CREATED],
};

/** The kind of any store. */
export function kindOf(store: string): EntityKind {
  if (store === 'models') return MODELS;
  const fields: readonly EntityField[] = [{ name: '', text: 'data.entity', kind: 'json', hint: 'data.entityHint' }];
  return { ...{ store, title: 'data.entities', about: 'data.about', fields, isOpen: true }, columns: [NAME, CREATED] };
}

const OWN = new Set(['_id', 'owner', 'group', 'branch', 'access', 'time', '_at', 'success']);

/** What its creator said of an entity. */
export const contentOf = (entity: Entity): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entity).filter(([name]) => !OWN.has(name) && !name.startsWith('_')));

const MOST_OWN_COLUMNS = 5;

/** The columns of a kind that some of these entities have; of an open kind also the fields that its creator named. */
export function columnsOf(
  { columns, isOpen = false }: EntityKind,
  entities: readonly Entity[],
): readonly EntityColumn[] {
  if (!isOpen) return columns;
  const fields = entities.flatMap((entity) => Object.entries(contentOf(entity)));
  const names = new Set(fields.filter(([, value]) => typeof value !== 'object').map(([name]) => name));
  const known = columns.filter(({ name }) => name !== NAME.name || names.delete(name));
  const own = [...names].slice(0, MOST_OWN_COLUMNS).map((name) => ({ name }));
  return [...known.slice(0, -1), ...own, ...known.slice(-1)];
}

/** What people call an entity; of one without a name its first text. */
export function labelOf(entity: Entity): string {
  const first = Object.values(contentOf(entity)).find((value) => typeof value === 'string' && value !== '');
  return String(entity.login ?? entity.name ?? first ?? entity._id);
}
