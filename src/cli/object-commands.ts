/** objects, packets, send. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Listing, type ListQuery, type VigilClient, VigilError } from '../client/client.js';
import { type Query, toQueryString } from '../client/query.js';
import { PACKET_FIELDS } from '../core/packet-fields.js';
import { PlainError, UsageError } from '../program.js';
import { type Command, listOf, type Options, parsePairs, type Session, textOf, type Values } from './command.js';

const LIST_OPTIONS: Options = {
  where: { type: 'string', multiple: true },
  search: { type: 'string' },
  only: { type: 'string', multiple: true },
  from: { type: 'string' },
  to: { type: 'string' },
  sort: { type: 'string' },
  limit: { type: 'string' },
  count: { type: 'boolean' },
};

export const INTERVAL_HELP = `  --from, --to <time>  bounds of the time: ms since the epoch, or ISO 8601 (UTC without a zone); --to a day means its end`;

const LIST_HELP = `  --where <field>=<v>  only with this value; may be given several times
  --only <field>,…     only these fields, and as columns in this order
  --sort <field>       sorts by a field; -<field> in descending order
  --limit <n>          at most n
  --count              only how many there are
${INTERVAL_HELP}`;

const OBJECT_COLUMNS = ['id', 'name', 'status', 'active', 'state.online', 'state.time'];
const PACKET_COLUMNS = ['time', 'online'];
const OWN_FIELDS: ReadonlySet<string> = new Set(PACKET_FIELDS);
const POLL_MS = 300;

function toQuery(values: Values, signal: AbortSignal): ListQuery {
  const limit = textOf(values, 'limit');
  if (limit !== undefined && !/^\d+$/.test(limit)) throw new UsageError(`--limit: ${limit} is not a number`);
  const where = parsePairs([values.where ?? []].flat() as string[]);
  return {
    signal,
    ...(Object.keys(where).length > 0 && { where: where as ListQuery['where'] }),
    search: textOf(values, 'search'),
    only: listOf(values, 'only'),
    from: textOf(values, 'from'),
    to: textOf(values, 'to'),
    sortBy: textOf(values, 'sort'),
    ...(limit !== undefined && { limit: Number(limit) }),
  };
}

/** Prints a list as it arrives. `columnsOf` returns the columns for the first element. */
async function printList(
  { output }: Session,
  list: Listing<object>,
  columnsOf: (first: object) => readonly string[],
): Promise<void> {
  let table: ReturnType<Session['output']['rows']> | null = null;
  let count = 0;
  for await (const page of list.pages()) {
    table ??= output.rows(columnsOf(page[0] as object));
    for (const element of page) table.row(element);
    count += page.length;
    output.progress(`${count.toLocaleString('en')} read …`);
  }
  table?.end();
  if (count === 0) output.say('None');
}

const objects: Command = {
  name: 'objects',
  usage: '[<object>]',
  summary: 'Lists the objects that you see, or shows one',
  help: `  --search <text>      text in the name or the id\n${LIST_HELP}`,
  options: LIST_OPTIONS,
  needsLogin: true,
  arguments: [0, 1],
  async run(session, values, [id]) {
    const { client, output, signal } = session;
    const only = listOf(values, 'only');
    if (id !== undefined) return output.one(await client.objects.get(id, { signal, only }));
    const query = toQuery(values, signal);
    if (values.count) return output.one({ count: (await client.objects.meta(query)).count });
    const shown = output.isJson || only ? {} : { only: OBJECT_COLUMNS };
    await printList(session, client.objects.list({ ...query, ...shown }), () => only ?? OBJECT_COLUMNS);
  },
};

const packets: Command = {
  name: 'packets',
  usage: '<object>',
  summary: 'Lists the packets of an object, the oldest first',
  help: `  --last <n>           the newest n
  --format <format>    a file on the standard output: csv, ndjson, geojson, gpx or parquet\n${LIST_HELP}`,
  options: { ...LIST_OPTIONS, last: { type: 'string' }, format: { type: 'string' } },
  needsLogin: true,
  arguments: [1, 1],
  async run(session, values, [id = '']) {
    const { client, output, signal } = session;
    const query = toQuery(values, signal);
    const last = textOf(values, 'last');
    const format = textOf(values, 'format');
    if (format !== undefined) return exportPackets(session, id, { ...query, format });
    if (values.count) return output.one({ count: (await client.objects.packetsMeta(id, query)).count });
    const columnsOf = (first: object): readonly string[] =>
      query.only ?? [...PACKET_COLUMNS, ...Object.keys(first).filter((name) => !OWN_FIELDS.has(name))];
    if (last === undefined) return printList(session, client.objects.packets(id, query), columnsOf);
    if (!/^\d+$/.test(last)) throw new UsageError(`--last: ${last} is not a number`);
    const newest = await client.objects.packets(id, { ...query, sortBy: '-time', limit: Number(last) }).all();
    const table = output.rows(columnsOf(newest.at(-1) ?? {}));
    for (const packet of newest.reverse()) table.row(packet);
    table.end();
  },
};

/** The markers at the end of an incomplete export. */
const INCOMPLETE = /#incomplete|"success":false|<incomplete[ >]/;
/** The end of a complete file in Parquet, whose last bytes may contain any text. */
const PARQUET_END = 'PAR1';
const END_CHARACTERS = 2_000;

async function exportPackets(
  { client, output, signal }: Session,
  id: string,
  query: ListQuery & { readonly format: string },
): Promise<void> {
  const path = `/api/v1/objects/${encodeURIComponent(id)}/packets${toQueryString({ ...query, signal: undefined } as object as Query)}`;
  const response = await client.open(path, { signal });
  const decoder = new TextDecoder();
  let end = '';
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain', { signal });
    end = (end + decoder.decode(piece, { stream: true })).slice(-END_CHARACTERS);
    bytes += piece.length;
    output.progress(`${(bytes / 1e6).toFixed(1)} MB …`);
  }
  const isIncomplete = query.format === 'parquet' ? !end.endsWith(PARQUET_END) : INCOMPLETE.test(end);
  if (isIncomplete) throw new PlainError('The export is incomplete: its last line contains the reason');
}

/** As many rows as a person looks at. */
const TABLE_POINTS = 50;

const series: Command = {
  name: 'series',
  usage: '<object> <parameter> …',
  summary: 'Shows the history of parameters in buckets',
  help: `A parameter may be a pattern, such as "temp*".

${INTERVAL_HELP}
  --points <n>         at most n buckets, which are equally long (default: ${TABLE_POINTS}, with --json 1,000)
  --every <time>       the length of the buckets instead: "15 min", "1 h", "1 day"
  --tz <zone>          the time zone of --every
  --fn <function>,…    minmax (default), avg, sum, count, first, last, p50, time-weighted-avg, increase, rate, duration`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    points: { type: 'string' },
    every: { type: 'string' },
    tz: { type: 'string' },
    fn: { type: 'string', multiple: true },
  },
  needsLogin: true,
  arguments: [2, 100],
  async run({ client, output, signal }, values, [id = '', ...params]) {
    const from = textOf(values, 'from');
    const to = textOf(values, 'to');
    const every = textOf(values, 'every');
    const tz = textOf(values, 'tz');
    const isDefault = every === undefined && !output.isJson;
    const points = textOf(values, 'points') ?? (isDefault ? String(TABLE_POINTS) : undefined);
    if (points !== undefined && !/^\d+$/.test(points)) throw new UsageError(`--points: ${points} is not a number`);
    const given = { from, to, every, tz, fn: listOf(values, 'fn'), ...(points && { points: Number(points) }) };
    const { time, ...found } = await client.objects.series(id, { params, ...given, signal });
    if (output.isJson) return output.one({ time, ...found });
    const columns = Object.entries(found).flatMap(([name, functions]) =>
      Object.entries((functions ?? {}) as Record<string, unknown[]>).map(
        ([fn, values]) => [`${name}.${fn}`, values] as const,
      ),
    );
    const table = output.rows(['time', ...columns.map(([name]) => name)]);
    time.forEach((at, row) => {
      if (columns.every(([, values]) => values[row] === null)) return;
      table.row(Object.fromEntries([['time', at], ...columns.map(([name, values]) => [name, values[row]])]));
    });
    table.end();
  },
};

const ENDED = new Set(['done', 'failed', 'expired']);

const send: Command = {
  name: 'send',
  usage: '<object> <command> [<name>=<value> …]',
  summary: 'Sends a command to an object',
  help: `  --ttl <time>         how long the command waits for the device: "10 min" (default: a day)
  --wait               waits for the result, and fails if the command fails
  Values are parsed as JSON if possible; others are text: level=3 mode=eco. Digits that
  a number would change are text as well: pin=0012 code=12E45678`,
  options: { ttl: { type: 'string' }, wait: { type: 'boolean' } },
  needsLogin: true,
  arguments: [2, 1_000],
  async run({ client, output, signal }, values, [id = '', name = '', ...words]) {
    const params = parsePairs(words);
    const { _id } = await client.objects
      .send(id, name, params, { ttl: textOf(values, 'ttl'), signal })
      .catch((error: unknown) => {
        if (!(error instanceof VigilError) || error.status !== 404) throw error;
        throw new PlainError(`There is no object "${id}", or its model does not declare the command "${name}"`);
      });
    if (!values.wait) return output.one({ _id });
    const ended = await waitForEnd(client, _id, signal);
    output.one(ended);
    if (ended.status !== 'done') throw new PlainError(`The command ${ended.status}`);
  },
};

async function waitForEnd(client: VigilClient, id: string, signal: AbortSignal) {
  for (;;) {
    const command = await client.commands.get(id, { signal });
    if (ENDED.has(command.status ?? '')) return command;
    await delay(POLL_MS, undefined, { signal });
  }
}

export const OBJECT_COMMANDS: readonly Command[] = [objects, packets, series, send];
