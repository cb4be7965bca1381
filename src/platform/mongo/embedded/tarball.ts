/** Fetches an archive with the user's npm settings, verifies its hash, and shows progress on a terminal. */
import { createWriteStream } from 'node:fs';
import type { Transform } from 'node:stream';
import pacote, { type Options } from 'pacote';

/** An archive to fetch: a package of a registry (`name@version`) or a URL, with the required hash. */
export type Archive = {
  spec: string;
  integrity: string;
  /** For the progress line; null when unknown. */
  bytes: number | null;
};

const probeTimeoutMs = 5_000;
const silenceTimeoutMs = 30_000;
// npm itself waits 10 and then 60 s between retries, which is too long for the start of a service.
const retries: Options = { fetchRetries: 2, fetchRetryMintimeout: 500, fetchRetryMaxtimeout: 2_000 };
const progressEveryMs = 1_000;

/** Gets a small response within seconds and without a retry. */
export async function readQuickly<T>(ask: (options: Options) => Promise<T>, settings: Options): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${probeTimeoutMs / 1000} s`)), probeTimeoutMs);
  });
  try {
    return await Promise.race([ask({ ...settings, fetchRetries: 0, timeout: probeTimeoutMs }), timedOut]);
  } finally {
    clearTimeout(timer);
  }
}

/** Writes the archive to the file; throws when it is unavailable or its hash is wrong. */
export async function saveArchive(archive: Archive, file: string, settings: Options): Promise<void> {
  const progress = createProgress(archive.bytes);
  const save = (stream: Transform) => {
    progress.restart();
    return writeAll(stream, file, progress.add);
  };
  try {
    // pacote calls again with another stream when the first one had wrong bytes.
    await pacote.tarball.stream(archive.spec, save, { ...settings, ...retries, integrity: archive.integrity });
  } finally {
    progress.end();
  }
}

/** Uses plain events, bound at once: pacote's stream may fail before an asynchronous listener is attached. */
function writeAll(stream: Transform, file: string, onBytes: (bytes: number) => void): Promise<void> {
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
      onBytes(chunk.length);
    });
    stream.pipe(target);
  });
}

/** Shows a line that overwrites itself, only on a terminal. */
function createProgress(total: number | null) {
  let received = 0;
  let shownAt = 0;
  const isTerminal = process.stderr.isTTY === true;
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
      if (isTerminal && Date.now() - shownAt >= progressEveryMs) show();
    },
    end() {
      if (isTerminal && shownAt > 0) process.stderr.write('\r\u001b[K');
    },
  };
}
