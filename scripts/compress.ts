// Asks the running service to compress packets that were stored without compression, and shows how far it is.
import {
  type Compression,
  isUnderWay,
  readCompression,
  requestCompression,
  withdrawCompression,
} from '../src/db/compression/state.js';
import { readBehindMs } from '../src/db/compression/tail.js';
import { createClient, type Database, databaseOf } from '../src/db/driver/client.js';
import { LIMITS } from '../src/model/limits.js';
import { SECOND_MS } from '../src/model/units.js';
import { failure, pause } from './client.js';
import { formatBytes, readInstallation, readPlainArguments, runPlainly, withDatabase } from './installation.js';

const HELP = `node dist/scripts/compress.js

Asks the running service to compress the packets of the database (MONGODB_URI, or the embedded one in DATA_DIR), and shows the
progress. Only packets of installations from before the version that compresses them need this. The service keeps running, and
goes on when this command ends.

  --status             shows how far it is, and asks for nothing
  --stop               gives it up: the packets stay as they were
  -h, --help           this text`;

const LOOK_MS = 500;
const LINE_MS = 5_000;

async function main(signal: AbortSignal): Promise<number> {
  const { status, stop } = readPlainArguments({ status: { type: 'boolean' }, stop: { type: 'boolean' } }, HELP);
  return withDatabase(readInstallation(), false, async (uri, canBeServed) => {
    const client = createClient(uri);
    try {
      await client.connect();
      const database = databaseOf(client);
      if (status) return print(await describeNow(database, await readCompression(database)));
      if (stop && !(await withdrawCompression(database))) return print('No packets are being compressed.');
      if (!stop) await requestCompression(database);
      // A Vigil cannot start before this command has ended.
      if (!canBeServed) return print(describe(await readCompression(database)));
      return print(describe(await follow(database, signal)));
    } finally {
      await client.close();
    }
  });
}

/** Shows the progress until it ends, or Ctrl-C: each stage, and while it copies a line every few seconds. */
async function follow(database: Database, signal: AbortSignal): Promise<Compression | null> {
  let shown = { stage: '', ms: 0 };
  for (;;) {
    const state = await readCompression(database);
    if (!isUnderWay(state) || signal.aborted) return state;
    if (state.stage !== shown.stage || performance.now() - shown.ms > LINE_MS) {
      console.log(await describeNow(database, state));
      shown = { stage: state.stage, ms: performance.now() };
    }
    await pause(LOOK_MS, signal);
  }
}

/** Also says whether the copy can follow. */
async function describeNow(database: Database, state: Compression | null): Promise<string> {
  const behindMs = isUnderWay(state) && state.token !== null ? await readBehindMs(database, state.token) : 0;
  if (behindMs < LIMITS.compressionBehindMs) return describe(state);
  const seconds = (behindMs / SECOND_MS).toLocaleString('en');
  return `${describe(state)} The copy is ${seconds} s behind: no Vigil runs, or more packets are stored than the copy can take.`;
}

function describe(state: Compression | null): string {
  if (state === null) return 'Nobody has asked to compress packets.';
  const { stage, copied, total, bytes, bytesAfter, problem } = state;
  const sizes = `${formatBytes(bytes)} before, ${formatBytes(bytesAfter ?? 0)} now`;
  if (stage === 'done' && copied === 0) return `The packets are compressed: ${formatBytes(bytesAfter ?? 0)}.`;
  if (stage === 'done') return `Compressed about ${total.toLocaleString('en')} packets: ${sizes}.`;
  if (stage === 'stopped') return 'The compression was stopped; the packets stay as they were.';
  if (stage === 'failed') throw failure(`The packets cannot be compressed: ${problem}.`);
  if (stage === 'requested') return 'Requested. A Vigil that runs on this database begins within 30 seconds.';
  if (stage === 'copying')
    return `Copied ${copied.toLocaleString('en')} of about ${total.toLocaleString('en')} packets.`;
  return stage === 'comparing' ? 'Comparing the packets with their copy.' : 'Exchanging the packets for their copy.';
}

function print(text: string): number {
  console.log(text);
  return 0;
}

await runPlainly(main);
