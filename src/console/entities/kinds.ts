/** What the pages of stores show and let people edit, store by store; stores of administrators are described by their schema. */
import { WEBHOOK_EVENTS } from '../../core/event-names.js';
import { COMMANDED_KINDS, MAPPED_KINDS, ZONED_KINDS } from '../../core/source-kinds.js';
import type { Entity } from '../state/api.js';
import type { TextKey } from '../text/language.js';
import { type EntityField, OWN_FIELDS } from './field.js';
import { fieldsOfSchema, REST } from './schema-fields.js';

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

export interface EntityColumn {
  readonly name: string;
  /** Without it, the label or the name is shown. */
  readonly text?: TextKey;
  readonly label?: string | undefined;
  readonly kind?: 'age' | 'date' | 'reference' | 'list' | 'check';
  readonly store?: string;
}

const NAME: EntityColumn = { name: 'name', text: 'entity.name' };
const CREATED: EntityColumn = { name: 'time', text: 'entity.created', kind: 'date' };
const NAME_FIELD: EntityField = { name: 'name', text: 'entity.name', kind: 'text', isRequired: true };

const USERS: EntityKind = {
  store: 'users',
  title: 'access.users',
  about: 'access.usersAbout',
  columns: [
    { name: 'login', text: 'login.login' },
    NAME,
    { name: 'role', text: 'entity.role', kind: 'reference', store: 'roles' },
    { name: 'group', text: 'entity.group', kind: 'reference', store: 'groups' },
    { name: 'active', text: 'entity.active', kind: 'check' },
  ],
  fields: [
    { name: 'login', text: 'login.login', kind: 'text', isRequired: true },
    { name: 'name', text: 'entity.name', kind: 'text', cleared: '' },
    { name: 'email', text: 'profile.email', kind: 'email', cleared: null },
    { name: 'password', text: 'login.password', kind: 'password', hint: 'access.passwordHint' },
    { name: 'role', text: 'entity.role', kind: 'reference', store: 'roles' },
    { name: 'group', text: 'entity.group', kind: 'reference', store: 'groups', isMoved: true },
    { name: 'active', text: 'entity.active', kind: 'check' },
  ],
};

const GROUPS: EntityKind = {
  store: 'groups',
  title: 'access.groups',
  about: 'access.groupsAbout',
  columns: [NAME, { name: 'parent', text: 'entity.parent', kind: 'reference', store: 'groups' }, CREATED],
  fields: [NAME_FIELD, { name: 'parent', text: 'entity.parent', kind: 'reference', store: 'groups' }],
};

const ROLES: EntityKind = {
  store: 'roles',
  title: 'access.roles',
  about: 'access.rolesAbout',
  columns: [NAME, { name: 'credentials', text: 'entity.credentials', kind: 'list' }],
  fields: [
    NAME_FIELD,
    {
      name: 'credentials',
      text: 'entity.credentials',
      kind: 'lines',
      hint: 'tokens.scopesHint',
      arePermissions: true,
      isRequired: true,
      cleared: [],
    },
  ],
};

const TOKENS: EntityKind = {
  store: 'tokens',
  title: 'access.tokens',
  about: 'access.tokensAbout',
  fields: null,
  isNewestFirst: true,
  columns: [
    NAME,
    { name: 'user', text: 'sharing.user', kind: 'reference', store: 'users' },
    { name: 'scopes', text: 'entity.credentials', kind: 'list' },
    { name: 'expiresAt', text: 'entity.expires', kind: 'date' },
    { name: 'lastUsed', text: 'entity.lastUsed', kind: 'age' },
  ],
};

const AUDIT: EntityKind = {
  store: 'audit',
  title: 'access.audit',
  about: 'access.auditAbout',
  fields: null,
  isNewestFirst: true,
  columns: [
    { name: 'time', text: 'live.time', kind: 'date' },
    { name: 'action', text: 'entity.action' },
    { name: 'login', text: 'login.login' },
    { name: 'address', text: 'entity.address' },
    { name: 'method', text: 'entity.method' },
    { name: 'path', text: 'entity.path' },
    { name: 'fields', text: 'entity.changed', kind: 'list' },
    { name: 'count', text: 'entity.count' },
  ],
};

export const ACCESS: readonly EntityKind[] = [USERS, GROUPS, ROLES, TOKENS, AUDIT];

export const MODELS: EntityKind = {
  store: 'models',
  title: 'data.models',
  about: 'data.modelsAbout',
  page: '/models',
  fields: [NAME_FIELD],
  columns: [NAME, CREATED],
};

const EXAMPLE_SCHEMA = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };

const LABELS: EntityKind = {
  store: 'labels',
  title: 'data.labels',
  about: 'data.labelsAbout',
  isOpen: true,
  columns: [NAME, CREATED],
  fields: [NAME_FIELD, REST],
};

const WEBHOOKS: EntityKind = {
  store: 'handlers',
  title: 'data.handlers',
  about: 'data.handlersAbout',
  columns: [
    NAME,
    { name: 'url', text: 'webhook.url' },
    { name: 'events', text: 'webhook.events', kind: 'list' },
    { name: 'active', text: 'entity.active', kind: 'check' },
    CREATED,
  ],
  fields: [
    NAME_FIELD,
    { name: 'url', text: 'webhook.url', kind: 'text', hint: 'webhook.urlHint', isRequired: true },
    {
      name: 'events',
      text: 'webhook.events',
      kind: 'several',
      hint: 'webhook.eventsHint',
      options: WEBHOOK_EVENTS,
      cleared: null,
    },
    { name: 'objects', text: 'webhook.objects', kind: 'lines', hint: 'webhook.objectsHint', cleared: null },
    { name: 'model', text: 'webhook.model', kind: 'reference', store: 'models', cleared: null },
    { name: 'labels', text: 'data.labels', kind: 'lines', hint: 'webhook.labelsHint', cleared: null },
    { name: 'only', text: 'webhook.only', kind: 'lines', hint: 'webhook.onlyHint', cleared: null },
    {
      name: 'mode',
      text: 'webhook.mode',
      kind: 'choice',
      options: ['object', 'batch'],
      hint: 'webhook.modeHint',
      cleared: null,
    },
    { name: 'headers', text: 'webhook.headers', kind: 'json', hint: 'webhook.headersHint', cleared: null },
    { name: 'active', text: 'entity.active', kind: 'check' },
    REST,
  ],
};

const SOURCES: EntityKind = {
  store: 'sources',
  title: 'data.sources',
  about: 'data.sourcesAbout',
  columns: [
    NAME,
    { name: 'id', label: 'id' },
    { name: 'kind', text: 'source.kind' },
    { name: 'register', text: 'source.register', kind: 'check' },
    { name: 'lastUsed', text: 'entity.lastUsed', kind: 'age' },
  ],
  fields: [
    { name: 'kind', text: 'source.kind', kind: 'cards', isRequired: true },
    NAME_FIELD,
    { name: 'id', label: 'id', kind: 'text', hint: 'source.idHint', isRequired: true },
    { name: 'register', text: 'source.register', kind: 'check', initial: false },
    { name: 'model', text: 'webhook.model', kind: 'reference', store: 'models' },
    { name: 'group', text: 'entity.group', kind: 'reference', store: 'groups', isFixed: true },
    {
      name: 'timezone',
      text: 'source.timezone',
      kind: 'text',
      hint: 'source.timezoneHint',
      kinds: ZONED_KINDS,
      cleared: null,
    },
    { name: 'map', text: 'source.map', kind: 'json', hint: 'source.mapHint', kinds: MAPPED_KINDS, cleared: null },
    {
      name: 'commandUrl',
      text: 'source.commandUrl',
      kind: 'text',
      hint: 'source.commandUrlHint',
      kinds: COMMANDED_KINDS,
      cleared: null,
    },
    {
      name: 'commandKey',
      text: 'source.commandKey',
      kind: 'password',
      hint: 'source.commandKeyHint',
      kinds: COMMANDED_KINDS,
      sentWith: 'commandUrl',
    },
  ],
};

const OWN_STORES: EntityKind = {
  store: 'stores',
  title: 'data.stores',
  about: 'data.storesAbout',
  columns: [NAME, { name: 'shared', text: 'data.shared' }, CREATED],
  fields: [
    { ...NAME_FIELD, hint: 'data.storeNameHint', isFixed: true },
    {
      name: 'schema',
      text: 'data.schema',
      kind: 'json',
      hint: 'data.schemaHint',
      initial: EXAMPLE_SCHEMA,
    },
    {
      name: 'shared',
      text: 'data.shared',
      kind: 'choice',
      options: [true, false],
      hint: 'data.sharedHint',
      cleared: false,
    },
  ],
};

const BUILT_IN: readonly EntityKind[] = [MODELS, LABELS, WEBHOOKS, SOURCES, OWN_STORES];

export const isBuiltInStore = (store: string): boolean => BUILT_IN.some((kind) => kind.store === store);

/** The kind of any store; the schema is that of a store of an administrator. */
export function kindOf(store: string, schema: unknown): EntityKind {
  const known = BUILT_IN.find((kind) => kind.store === store);
  if (known !== undefined) return known;
  const fields = fieldsOfSchema(schema);
  return { store, title: 'data.entities', about: 'data.about', fields, isOpen: true, columns: [NAME, CREATED] };
}

/** What its creator said of an entity. */
export const contentOf = (entity: Entity): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entity).filter(([name]) => !OWN_FIELDS.has(name) && !name.startsWith('_')));

const MOST_OWN_COLUMNS = 5;

/** The columns of a kind that some of these entities have; of an open kind also the fields that its creator named. */
export function columnsOf(
  { columns, fields: formFields, isOpen = false }: EntityKind,
  entities: readonly Entity[],
): readonly EntityColumn[] {
  if (!isOpen) return columns;
  const fields = entities.flatMap((entity) => Object.entries(contentOf(entity)));
  const names = new Set(fields.filter(([, value]) => typeof value !== 'object').map(([name]) => name));
  const known = columns.filter(({ name }) => name !== NAME.name || names.delete(name));
  const labelIn = (name: string) => formFields?.find((field) => field.name === name)?.label;
  const own = [...names].slice(0, MOST_OWN_COLUMNS).map((name) => ({ name, label: labelIn(name) }));
  const titled = known.map((column) => ({ ...column, label: labelIn(column.name) }));
  return [...titled.slice(0, -1), ...own, ...titled.slice(-1)];
}

/** What people call an entity; of one without a name its first text. */
export function labelOf(entity: Entity): string {
  const first = Object.values(contentOf(entity)).find((value) => typeof value === 'string' && value !== '');
  return String(entity.login ?? entity.name ?? first ?? entity._id);
}
