/** apply: creates and changes entities as files describe them. Shows the differences and asks for confirmation first. */
import { createInterface } from 'node:readline/promises';
import { type StoreClient, type VigilClient, VigilError } from '../client/client.js';
import { PlainError, UsageError } from '../program.js';
import { type Difference, findDifferences, referencesIn, resolveReferences, toChange } from './apply-plan.js';
import type { Command, Session } from './command.js';
import { ownValue } from './field-names.js';
import { keyOf, readManifests, type Wanted } from './manifest.js';
import { plain } from './output.js';

type Fields = Readonly<Record<string, unknown>>;
type AnyStore = StoreClient<{
  entity: Fields & { _id: string };
  fields: Fields & { _id: string };
  create: Fields;
  change: Fields;
  created: Fields & { _id: string };
}>;

/** The planned change of one entity; nothing to do without differences. */
interface Step {
  readonly wanted: Wanted;
  /** Null: it is created. */
  readonly id: string | null;
  readonly differences: readonly Difference[];
}

/** The existing entities that the files name or refer to, by `store/name`. */
type Known = Map<string, Fields & { _id: string }>;

const apply: Command = {
  name: 'apply',
  usage: '-f <file or folder>',
  summary: 'Creates and changes entities so that they are as YAML or JSON files describe them',
  help: `  -f, --file <path>    a file, or a folder with files; may be given several times
  --yes                does not ask
  --dry-run            only shows the difference`,
  options: {
    file: { type: 'string', short: 'f', multiple: true },
    yes: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
  },
  needsLogin: true,
  arguments: [0, 0],
  async run(session, values) {
    const { output, client } = session;
    const paths = [values.file ?? []].flat() as string[];
    if (paths.length === 0) throw new UsageError('-f is missing: the file or the folder to apply');
    const wanted = (await Promise.all(paths.map(readManifests))).flat();
    const known: Known = new Map();
    for (const name of namesIn(wanted)) await findNamed(client, known, name);
    const steps = wanted.map((one) => toStep(one, known, wanted));
    const open = steps.filter(({ id, differences }) => id === null || differences.length > 0);
    for (const step of open) showStep(session, step);
    const created = open.filter(({ id }) => id === null).length;
    const changed = open.length - created;
    const summary = `${created} to create, ${changed} to change, ${steps.length - open.length} unchanged`;
    output.say(summary);
    if (open.length === 0 || values['dry-run']) return;
    if (!values.yes && !(await isConfirmed(session))) throw new PlainError('Nothing was changed');
    for (const [index, step] of open.entries()) {
      await applyStep(session, known, step).catch((error: unknown) => {
        if (!(error instanceof VigilError)) throw error;
        const { wanted } = step;
        throw new PlainError(
          `${wanted.source}: ${nameOf(wanted)}: ${error.message}. ${index} of ${open.length} applied`,
        );
      });
    }
    output.say(`Applied: ${created} created, ${changed} changed`);
  },
};

const nameOf = ({ store, name }: Wanted): string => `${store}/${name}`;

/** The names of the entities in the files, and of those they refer to. */
const namesIn = (wanted: readonly Wanted[]): ReadonlySet<string> =>
  new Set(wanted.flatMap((one) => [nameOf(one), ...referencesIn(one.fields)]));

const storeOf = (client: VigilClient, name: string): AnyStore => client.store(name) as unknown as AnyStore;

/** Finds the entity of a name. Several entities of the same name are an error, since the reference is ambiguous. */
async function findNamed(client: VigilClient, known: Known, name: string): Promise<void> {
  const [, store, key] = /^([a-z][a-z0-9-]*)\/(.+)$/s.exec(name) ?? [];
  if (store === undefined || key === undefined) throw new PlainError(`${name}: expected <store>/<name>`);
  const where = { [keyOf(store)]: key };
  const found = await storeOf(client, store)
    .list({ where, limit: 2 })
    .all()
    // A store that the files will create.
    .catch((error: { status?: number }) => {
      if (error.status === 404) return [];
      throw error;
    });
  if (found.length > 1) throw new PlainError(`${name}: several entities have this name`);
  if (found[0] !== undefined) known.set(name, found[0]);
}

function toStep(wanted: Wanted, known: Known, all: readonly Wanted[]): Step {
  const current = known.get(nameOf(wanted));
  const planned = new Set(all.map(nameOf));
  const idOf = (reference: string): string => {
    const id = known.get(reference)?._id;
    if (id === undefined && !planned.has(reference)) {
      throw new PlainError(`${wanted.source}: there is no ${reference}, or you do not see it`);
    }
    // One that will be created has no _id yet.
    return id ?? `(${reference})`;
  };
  const fields = resolveReferences(wanted.fields, idOf) as Fields;
  if (current === undefined) return { wanted, id: null, differences: findDifferences({}, fields) };
  return { wanted, id: current._id, differences: findDifferences(current, fields) };
}

function showStep({ output }: Session, { wanted, id, differences }: Step): void {
  if (output.isJson) {
    const { store, name } = wanted;
    const shown = differences.map(({ names, before, after }) => ({ path: names.join('.'), before, after }));
    output.one({ store, name, action: id === null ? 'create' : 'change', differences: shown });
    return;
  }
  const mark = id === null ? output.color('green', '+') : output.color('yellow', '~');
  console.log(`${mark} ${output.bold(plain(nameOf(wanted)))}`);
  for (const { names, before, after } of differences) {
    const was = id === null || before === undefined ? '' : `${output.color('red', toText(before))} → `;
    console.log(`    ${plain(names.join('.'))}: ${was}${output.color('green', toText(after))}`);
  }
}

const toText = (value: unknown): string => plain(JSON.stringify(value) ?? 'none');

async function isConfirmed({ signal }: Session): Promise<boolean> {
  if (!process.stdin.isTTY) throw new PlainError('Nothing was changed: add --yes, or run this at a terminal');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Apply? [y/N] ', { signal }).finally(() => terminal.close());
  return /^y(es)?$/i.test(answer.trim());
}

async function applyStep({ client, output }: Session, known: Known, { wanted, id, differences }: Step): Promise<void> {
  const store = storeOf(client, wanted.store);
  const idOf = (reference: string): string => {
    const target = known.get(reference)?._id;
    if (target === undefined)
      throw new PlainError(`${wanted.source}: ${reference} is created after the entity that refers to it`);
    return target;
  };
  const fields = resolveReferences(wanted.fields, idOf) as Fields;
  const changed = id === null ? await store.create(fields) : await store.update(id, pickChanged(fields, differences));
  known.set(nameOf(wanted), changed);
  // Only this answer contains them.
  for (const name of ['secret', 'token']) {
    if (id === null && typeof changed[name] === 'string') {
      output.say(`${plain(nameOf(wanted))}: ${name} ${changed[name]} (shown this once: keep it)`);
    }
  }
}

/** The changed fields as the file describes them, with references replaced. */
function pickChanged(fields: Fields, differences: readonly Difference[]): Fields {
  const valueAt = (names: readonly string[]): unknown =>
    names.reduce<unknown>((inner, name) => ownValue(inner as Fields, name), fields);
  return toChange(differences.map((difference) => ({ ...difference, after: valueAt(difference.names) })));
}

export const APPLY_COMMANDS: readonly Command[] = [apply];
