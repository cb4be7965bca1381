/** The table of stores: the fields of each, which are required, unique, hidden, or set by the service. */
import { z } from 'zod';
import { isCredential } from './access.js';
import { explainSeconds, explainTimeAhead, explainTokenLifetime } from './duration.js';
import { badRequest } from './errors.js';
import { explainIssue } from './field-errors.js';
import { parseFormulas } from './formula.js';
import { geometry } from './geojson.js';
import type { JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { modelData } from './model.js';
import { isValidOwnId, toOwnId } from './own-id.js';
import { REPORT_KINDS } from './report-kinds.js';
import { parseRule } from './rule/rule.js';
import { SEVERITIES } from './rule/severity.js';
import { MAIL_LANGUAGES, MAILED_INTERVALS, parseScheduledReport } from './scheduled-report.js';
import { compileSchema } from './schema/schema.js';
import { checkSource } from './source.js';
import { SOURCE_KIND_NAMES } from './source-kinds.js';
import { parseWebhook, WEBHOOK_URL } from './webhook.js';
import { findZone } from './zone.js';

export interface Store {
  readonly name: string;
  /** Fields whose values are unique in the installation. */
  readonly unique: readonly string[];
  /** Stored, never returned, never filtered or sorted by. */
  readonly hidden: readonly string[];
  /** Returned, but not stored with the entity: never filtered or sorted by. */
  readonly derived: readonly string[];
  /** Set by the service: ignored in every body. */
  readonly service: readonly string[];
  /** Set only on creation: ignored in a PATCH. */
  readonly fixed: readonly string[];
  /** Fields that null removes: they are not stored as null, which an index or a reference would take for a value. */
  readonly removable: readonly string[];
  /** Fields that a PATCH replaces as a whole, whatever they contain. */
  readonly replaced: readonly string[];
  /** Paths of fields that contain the `_id` of another entity. */
  readonly references: readonly string[];
  /** Text fields: filters compare them as text. */
  readonly texts: readonly string[];
  readonly defaults: JsonObject;
  /** Has entities that everyone can read and nobody can change. */
  readonly builtIn: boolean;
  /** Visible to those who see its object, not to its owner as such. */
  readonly followsObject: boolean;
  /** Read also by those who see an object: the model that it has, or what belongs to the groups above it. */
  readonly throughObjects: 'model' | 'groups' | null;
  /** Written only by the service; the generic interface reads it. */
  readonly readOnly: boolean;
  /** The fields that clients set on creation. */
  readonly schema: z.ZodObject;
  /** Converts fields to the form in which they are stored, before they are checked; null if there is none. */
  readonly normalize: ((fields: JsonObject) => void) | null;
  /** Throws a 400 that names the field. */
  readonly checkNew: (fields: JsonObject) => void;
  readonly checkPatch: (fields: JsonObject) => void;
  /** Converts field names of other platforms to ours; null if there are none. */
  readonly translate: ((fields: JsonObject) => void) | null;
  /** Checks the whole entity as a change would leave it; null if single fields suffice. May return a promise. */
  readonly checkWhole: ((fields: JsonObject, userId: string) => unknown) | null;
}

const text = (max: number = LIMITS.nameCharacters) => z.string().max(max);
const name = text().min(1);
const id = z.string().regex(/^[0-9a-f]{24}$/i, 'expected 24 hexadecimal digits');
const credentials = z
  .array(z.string().refine(isCredential, 'expected "METHOD /path/pattern", such as "GET /objects/*"'))
  .max(LIMITS.credentials);
/** A duration, or another value that `explain` names. */
const durationBy = (explain: (value: unknown) => string | null) =>
  z.union([z.string(), z.number()], { error: ({ input }) => explain(input) ?? SPAN }).superRefine((value, context) => {
    const fault = explain(value);
    if (fault !== null) context.addIssue(fault);
  });
const SPAN = 'expected a duration such as "10 min", or milliseconds';
const duration = durationBy(explainTokenLifetime);
const timeAhead = durationBy(explainTimeAhead);
const span = durationBy(explainSeconds);
const ownId = z
  .string()
  .min(1)
  .max(LIMITS.idCharacters)
  // These change the meaning of a path or an MQTT topic. `+` does so only in topic filters, which do not contain ids.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses them
  .regex(/^[^#/\u0000-\u001f\u007f]+$/, 'may not contain #, / or control characters')
  .refine(isValidOwnId, 'may not be *, . or .., 24 hexadecimal digits (an _id) or blank');
const password = z.string().min(LIMITS.passwordCharactersMin).max(LIMITS.passwordCharactersMax);
const record = z.record(z.string(), z.unknown(), 'expected an object');

interface Definition {
  fields: z.ZodRawShape;
  unique?: string[];
  hidden?: string[];
  derived?: string[];
  service?: string[];
  fixed?: string[];
  removable?: string[];
  replaced?: string[];
  references?: string[];
  texts?: string[];
  defaults?: JsonObject;
  builtIn?: boolean;
  followsObject?: boolean;
  throughObjects?: 'model' | 'groups';
  readOnly?: boolean;
  checkWhole?: (fields: JsonObject) => unknown;
  normalize?: (fields: JsonObject) => void;
  translate?: (fields: JsonObject) => void;
}

const DEFINITIONS: Readonly<Record<string, Definition>> = {
  objects: {
    fields: {
      id: ownId,
      name,
      model: id.optional(),
      status: text().nullish(),
      active: z.boolean().optional(),
      config: record.nullish(),
      description: text(LIMITS.jsonStringCharacters).nullish(),
    },
    unique: ['id'],
    derived: ['state'],
    service: ['models', 'state', 'wrongClock', 'packetsRemoved'],
    references: ['model', 'models.id'],
    texts: ['id', 'name', 'status', 'description'],
    defaults: { status: '', active: true },
    normalize(fields) {
      if (typeof fields.id === 'string') fields.id = toOwnId(fields.id);
    },
  },
  models: {
    fields: {
      name,
      data: modelData.superRefine(checkFormulas).nullish(),
      // 0: for ever; absent: RETENTION_DAYS.
      retentionDays: z.int().min(0).max(LIMITS.retentionDays).nullish(),
      timeAhead: timeAhead.nullish(),
    },
    builtIn: true,
    throughObjects: 'model',
  },
  users: {
    fields: {
      login: text().min(1),
      password,
      email: z.email().max(LIMITS.nameCharacters).nullish(),
      name: text().nullish(),
      role: id.optional(),
      active: z.boolean().optional(),
      disabled: z.boolean().nullish(),
      object: id.nullish(),
    },
    unique: ['login', 'email'],
    removable: ['email', 'object'],
    // Channels and when they are used: only their user reads them.
    hidden: ['_password', '_channels', '_confirmed', '_quiet', '_minSeverity'],
    replaced: ['_quiet'],
    references: ['role', 'object'],
    texts: ['login', 'email', 'name'],
    defaults: { active: true },
    // `disabled` wins over `active`: no answer contains it, so the client has just set it.
    translate(fields) {
      if (typeof fields.disabled === 'boolean') fields.active = !fields.disabled;
      delete fields.disabled;
    },
  },
  groups: { fields: { name, parent: id.nullish() }, hidden: ['_moved'], references: ['parent'] },
  roles: { fields: { name, credentials }, builtIn: true },
  tokens: {
    fields: { name, expiresIn: duration.optional(), scopes: credentials.nullish() },
    hidden: ['_expires', '_parents', '_objects', '_link'],
    service: ['token', 'issuedAt', 'expiresAt', 'user', 'lastUsed'],
    fixed: ['expiresIn', 'scopes'],
    references: ['user', '_link.object'],
  },
  commands: {
    fields: {},
    hidden: ['_holder', '_bySource', '_downlink', '_early', '_withoutOwner', '_rule'],
    references: ['object'],
    texts: ['command', 'status'],
    followsObject: true,
    readOnly: true,
  },
  audit: {
    fields: {},
    hidden: ['_expires'],
    references: ['user'],
    texts: ['action', 'login', 'address'],
    readOnly: true,
  },
  geofences: {
    fields: { name: text().nullish(), geometry: geometry.nullish(), radius: z.number().positive().nullish() },
    throughObjects: 'groups',
  },
  labels: { fields: { name: text().nullish() }, throughObjects: 'groups' },
  // What the first page of the console shows: the query of its address.
  views: {
    fields: {
      name,
      query: text(LIMITS.viewCharacters).regex(/^[^\s?#]*$/, 'expected the query of an address, without its "?"'),
      shared: z.boolean().optional(),
    },
    texts: ['name', 'query'],
    defaults: { shared: false },
  },
  handlers: {
    fields: {
      name: text().nullish(),
      url: z.url({ protocol: /^https?$/, error: `expected ${WEBHOOK_URL}` }).nullish(),
    },
    hidden: ['_secrets', '_editor', '_handover', '_resumed'],
    service: ['secret'],
    references: ['_editor.user'],
    checkWhole: parseWebhook,
  },
  sources: {
    fields: {
      id: ownId,
      name,
      kind: z.enum(SOURCE_KIND_NAMES, { error: `expected one of ${SOURCE_KIND_NAMES.join(', ')}` }),
      model: id.optional(),
      // Whether unknown devices become objects.
      register: z.boolean().optional(),
      // Of times without a zone.
      timezone: z
        .string()
        .refine((zone) => findZone(zone) !== null, 'expected a time zone such as Europe/Berlin')
        .nullish(),
      map: record.nullish(),
      // Where the system takes commands for its devices, and with which key.
      commandUrl: z
        .url({ protocol: /^https?$/, error: 'expected an address such as https://traccar.example.com' })
        .max(LIMITS.sourceUrlCharacters)
        .nullish(),
      commandKey: z
        .string()
        .min(1)
        .max(LIMITS.sourceUrlCharacters)
        .regex(/^[\x21-\x7e]+$/, 'expected a key')
        .nullish(),
    },
    unique: ['id'],
    hidden: ['_key', '_commandKey'],
    service: ['key', 'lastUsed'],
    references: ['model'],
    texts: ['id', 'name', 'kind'],
    defaults: { register: false },
    checkWhole: checkSource,
    normalize(fields) {
      if (typeof fields.id === 'string') fields.id = toOwnId(fields.id);
    },
  },
  rules: {
    fields: {
      name,
      active: z.boolean().optional(),
      severity: z.enum(SEVERITIES).optional(),
      select: record.nullish(),
      when: record,
      clear: record.nullish(),
      schedule: record.nullish(),
      for: span.nullish(),
      clearFor: span.nullish(),
      control: span.nullish(),
      then: z.array(record).nullish(),
      remind: span.nullish(),
      escalate: z.array(record).nullish(),
    },
    hidden: ['_editor'],
    service: ['disabledReason'],
    replaced: ['select', 'when', 'clear', 'schedule'],
    references: ['_editor.user'],
    defaults: { active: true, severity: 'warning' },
    checkWhole: parseRule,
  },
  // Reports by mail.
  schedules: {
    fields: {
      name,
      report: z.enum(REPORT_KINDS, { error: `expected one of ${REPORT_KINDS.join(', ')}` }),
      query: record.nullish(),
      interval: z.enum(MAILED_INTERVALS, { error: `expected one of ${MAILED_INTERVALS.join(', ')}` }),
      hours: record.nullish(),
      cron: text(),
      tz: text().nullish(),
      to: record,
      language: z.enum(MAIL_LANGUAGES, { error: `expected one of ${MAIL_LANGUAGES.join(', ')}` }).optional(),
      active: z.boolean().optional(),
    },
    hidden: ['_scopes'],
    service: ['due', 'asked', 'lastDue', 'lastRun'],
    replaced: ['query', 'hours', 'to'],
    texts: ['name', 'report'],
    defaults: { query: {}, tz: 'UTC', language: 'en', active: true },
    checkWhole: parseScheduledReport,
  },
  alarms: {
    fields: {},
    hidden: ['_withoutOwner'],
    references: ['rule', 'object'],
    texts: ['name', 'status', 'severity'],
    followsObject: true,
    readOnly: true,
  },
  // What people write about an object, at a moment or over an interval. Written at the object.
  notes: {
    fields: {},
    hidden: ['_withoutOwner'],
    references: ['object'],
    texts: ['text', 'author'],
    followsObject: true,
    readOnly: true,
  },
  stores: {
    fields: {
      name: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, 'expected lower-case letters, digits and hyphens, at most 64'),
      schema: record.optional(),
      // Usable by every group; only for stores of the root group.
      shared: z.boolean().optional(),
    },
    fixed: ['name'],
    // Two valid schemas can merge into an invalid one. Only compiled here, so the clock is not needed.
    checkWhole: ({ schema }) => void compileSchema((schema ?? {}) as JsonObject, () => 0),
  },
};

/** Every built-in store by name. A Map: in an object, `constructor` would be a name. */
export const STORES: ReadonlyMap<string, Store> = new Map(
  Object.entries(DEFINITIONS).map(([storeName, definition]) => [storeName, toStore(storeName, definition)]),
);

/** A built-in store that is known to exist. */
export function builtInStore(storeName: string): Store {
  const store = STORES.get(storeName);
  if (store === undefined) throw new Error(`no built-in store ${storeName}`);
  return store;
}

/** A store that an administrator added: `check` validates its entities, new and changed, by their JSON Schema. */
export function customStore(storeName: string, check: NonNullable<Store['checkWhole']>): Store {
  return { ...toStore(storeName, { fields: {} }), texts: [], checkWhole: check };
}

function toStore(storeName: string, definition: Definition): Store {
  const schema = z.looseObject(definition.fields);
  const patch = schema.partial();
  return {
    name: storeName,
    unique: definition.unique ?? [],
    hidden: definition.hidden ?? [],
    derived: definition.derived ?? [],
    service: definition.service ?? [],
    fixed: definition.fixed ?? [],
    removable: definition.removable ?? [],
    replaced: definition.replaced ?? [],
    references: ['owner', 'group', 'branch', 'access', ...(definition.references ?? [])],
    texts: definition.texts ?? ['name'],
    defaults: definition.defaults ?? {},
    builtIn: definition.builtIn ?? false,
    followsObject: definition.followsObject ?? false,
    throughObjects: definition.throughObjects ?? null,
    readOnly: definition.readOnly ?? false,
    schema,
    checkNew: (fields) => checkAgainst(schema, fields),
    checkPatch: (fields) => checkAgainst(patch, fields),
    normalize: definition.normalize ?? null,
    translate: definition.translate ?? null,
    checkWhole: definition.checkWhole ?? null,
  };
}

function checkFormulas(data: unknown, context: z.RefinementCtx): void {
  parseFormulas(data, (path, message) => context.addIssue({ code: 'custom', path: [...path], message }));
}

/** Frozen: zod extends a copy, and V8 (Node.js 20) extends the copy of a frozen object without a new shape. */
const CHECKING = Object.freeze({ reportInput: true, error: explainIssue });

/** What zod says of a required field that is missing. */
const MISSING: ReadonlySet<string> = new Set(['invalid_type', 'invalid_value']);

function checkAgainst(schema: z.ZodType, fields: JsonObject): void {
  const result = schema.safeParse(fields, CHECKING);
  const issue = result.error?.issues[0];
  if (issue === undefined) return;
  const field = issue.path.join('.');
  throw badRequest(
    issue.input === undefined && MISSING.has(issue.code) ? `${field}: required` : `${field}: ${issue.message}`,
  );
}

/** Stores that determine permissions. Their entities are changed one by one, so that each change is recorded; never in bulk. */
export const SINGLE_ONLY: ReadonlySet<string> = new Set(['users', 'roles', 'groups', 'tokens', 'stores']);
