/** export: writes the packets of objects as Parquet files, one for each object and day, in the folders that Hive made usual. */
import { createWriteStream } from 'node:fs';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { VigilError } from '../client/client.js';
import { toQueryString } from '../client/query.js';
import { DAY_MS } from '../core/units.js';
import { PlainError, UsageError } from '../program.js';
import { type Command, listOf, type Session, textOf } from './command.js';
import { INTERVAL_HELP } from './object-commands.js';

/** The last bytes of a complete file. */
const PARQUET_END = 'PAR1';
const FILE = 'packets.parquet';
/** File systems allow 255 bytes in a name. */
const MAX_NAME_CHARACTERS = 240;

interface ExportedObject {
  readonly _id: string;
  readonly id?: string;
}

interface Interval {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

interface DayExport {
  readonly fromMs: number;
  readonly toMs: number;
  readonly only: readonly string[] | undefined;
  readonly path: string;
}

const exportFiles: Command = {
  name: 'export',
  usage: '[<object> …] --parquet <folder>',
  summary: 'Writes the packets of objects, or of all that you see, as Parquet files',
  help: `  --parquet <folder>   the folder: one file for each object and day, object=<object>/day=<day>/${FILE}
  --only <field>,…     only these fields; geometry is the position
${INTERVAL_HELP}`,
  options: {
    parquet: { type: 'string' },
    only: { type: 'string', multiple: true },
    from: { type: 'string' },
    to: { type: 'string' },
  },
  needsLogin: true,
  arguments: [0, 1_000],
  async run(session, values, ids) {
    const folder = textOf(values, 'parquet');
    if (folder === undefined || folder === '') throw new UsageError('--parquet is missing: the folder for the files');
    const interval = { from: textOf(values, 'from'), to: textOf(values, 'to') };
    const only = listOf(values, 'only');
    let files = 0;
    let bytes = 0;
    for await (const object of objectsOf(session, ids)) {
      for await (const { day, ...bounds } of daysOf(session, object, interval)) {
        const path = join(folder, `object=${toFolderName(object)}`, `day=${day}`);
        session.output.progress(`${object.id ?? object._id} ${day} … (${files} files, ${(bytes / 1e6).toFixed(1)} MB)`);
        bytes += await exportDay(session, object, { ...bounds, only, path });
        files++;
      }
    }
    session.output.say(
      files === 0 ? 'No packets' : `${files} ${files === 1 ? 'file' : 'files'}, ${(bytes / 1e6).toFixed(1)} MB`,
    );
    if (session.output.isJson) session.output.one({ files, bytes });
  },
};

async function* objectsOf({ client, signal }: Session, ids: readonly string[]): AsyncGenerator<ExportedObject> {
  if (ids.length === 0) return yield* client.objects.list({ only: ['id'], signal });
  for (const id of ids) {
    yield await client.objects.get(id, { only: ['id'], signal }).catch((error: unknown) => {
      if (error instanceof VigilError && error.status === 404) throw new PlainError(`There is no object "${id}"`);
      throw error;
    });
  }
}

/** The days in UTC that have packets, with the bounds of these packets. Packets that arrive meanwhile are left out. */
async function* daysOf({ client, signal }: Session, { _id }: ExportedObject, { from, to }: Interval) {
  const find = async (query: Interval & { readonly sortBy: string }): Promise<number | null> => {
    const [packet] = await client.objects.packets(_id, { ...query, only: ['time'], limit: 1, signal }).all();
    return packet?.time ?? null;
  };
  const lastMs = await find({ from, to, sortBy: '-time' });
  if (lastMs === null) return;
  let fromMs = await find({ from, to, sortBy: 'time' });
  while (fromMs !== null && fromMs <= lastMs) {
    const nextDayMs = (Math.floor(fromMs / DAY_MS) + 1) * DAY_MS;
    const day = toIso(fromMs).slice(0, -'T00:00:00.000Z'.length);
    yield { day, fromMs, toMs: Math.min(nextDayMs - 1, lastMs) };
    fromMs = await find({ from: toIso(nextDayMs), sortBy: 'time' });
  }
}

/** Writes the file of a day, and returns its bytes. It has its name only when it is complete. */
async function exportDay(
  { client, signal }: Session,
  object: ExportedObject,
  { fromMs, toMs, only, path }: DayExport,
): Promise<number> {
  const query = toQueryString({ format: 'parquet', from: toIso(fromMs), to: toIso(toMs), only });
  const response = await client.open(`/api/v1/objects/${object._id}/packets${query}`, { signal });
  const file = join(path, FILE);
  const part = `${file}.part`;
  let bytes = 0;
  let end = Buffer.alloc(0);
  const counted = async function* (pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      bytes += piece.length;
      end = Buffer.concat([end, piece]).subarray(-PARQUET_END.length);
      yield piece;
    }
  };
  await createFolder(path);
  try {
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    await pipeline(body, counted, createWriteStream(part), { signal });
    if (end.toString('latin1') !== PARQUET_END)
      throw new PlainError(`${file} could not be read to its end: run this again`);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  return bytes;
}

/**
 * Creates the folder and those that it is in. Node.js itself never ends that where the system says that a folder is missing whose parent
 * exists, as Linux does for new ones in /proc.
 */
async function createFolder(path: string): Promise<void> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  if (dirname(path) !== path) await createFolder(dirname(path));
  try {
    await mkdir(path);
  } catch (error) {
    // Another export may have created it.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw new PlainError(`The folder ${path} cannot be created: ${(error as Error).message}`);
  }
}

const toIso = (ms: number): string => new Date(ms).toISOString();

/** Readers decode the name of a folder as they decode an address. */
function toFolderName({ _id, id = _id }: ExportedObject): string {
  const name = encodeURIComponent(id).replace(/[*']|\.$/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return name.length > MAX_NAME_CHARACTERS ? _id : name;
}

export const EXPORT_COMMANDS: readonly Command[] = [exportFiles];
