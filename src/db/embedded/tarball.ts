/** Fetches one archive over the user's npm settings, checks every byte against its hash, and tells a person how far it is. */
import { createWriteStream } from 'node:fs';
import type { Transform } from 'node:stream';
import pacote, { type Options } from 'pacote';

/** An archive to fetch: a package of a registry (`name@version`) or an address, and the hash that it must have. */
export type Archive = {
  spec: string;
  integrity: string;
  /** For the progress line; null when unknown. */
  bytes: number | null;
};

const probeTimeoutMs = 5_000;
const silenceTimeoutMs = 30_000;
// npm itself waits 10 and then 60 s between its tries; somebody waits for the service here.
const retries: Options = { fetchRetries: 2, fetchRetryMintimeout: 500, fetchRetryMaxtimeout: 2_000 };
const progressEveryMs = 1_000;

/** A small answer of a site, within seconds and without a second try. */
export async function readQuickly<T>(ask: (options: Options) => Promise<T>, settings: Options): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${probeTimeoutMs / 1000} s`)), probeTimeoutMs);
  });
  try {
    return await Promise.race([ask({ ...settings, fetchRetries: 0, timeout: probeTimeoutMs }), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

/** Writes the archive to the file; throws when it cannot be had or is not the one that was meant. */
export async function saveArchive(archive: Archive, file: string, settings: Options): Promise<void> {
  const progress = createProgress(archive.bytes);
  const save = (stream: Transform) => {
    progress.restart();
    return writeAll(stream, file, progress.add);
  };
  try {
    // pacote calls again with another stream when the first brought wrong bytes.
    await pacote.tarball.stream(archive.spec, save, { ...settings, ...retries, integrity: archive.integrity });
  } finally {
    progress.end();
  }
}

/** Plain events, bound at once: pacote's stream may fail before anything that waits gets to listen, and nobody would hear. */
function writeAll(stream: Transform, file: string, seen: (bytes: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const target = createWriteStream(file);
    const watchdog = setTimeout(() => stream.destroy(new Error('the download stopped')), silenceTimeoutMs);
    const fail = (error: Error) => {
      clearTimeout(watchdog);
      target.destroy();
      reject(error);
    };
    stream.on('error', fail);
    target.on('error', fail);
    target.on('finish', () => {
      clearTimeout(watchdog);
      resolve();
    });
    stream.on('data', (chunk: Buffer) => {
      watchdog.refresh();
      seen(chunk.length);
    });
    stream.pipe(target);
  });
}

/** A line that is written over itself, for a terminal only: a log file keeps the two messages around it. */
function createProgress(total: number | null) {
  let received = 0;
  let shownAt = 0;
  const isForPerson = process.stderr.isTTY === true;
  const show = () => {
    shownAt = Date.now();
    const amount = total ? `${Math.floor((100 * received) / total)} %` : `${Math.floor(received / 1e6)} MB`;
    process.stderr.write(`\rFetching MongoDB … ${amount} `);
  };
  return {
    restart() {
      received = 0;
    },
    add(bytes: number) {
      received += bytes;
      if (isForPerson && Date.now() - shownAt >= progressEveryMs) show();
    },
    end() {
      if (isForPerson && shownAt > 0) process.stderr.write('\r\u001b[K');
    },
  };
}
