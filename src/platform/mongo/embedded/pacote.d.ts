/** Declares the part of `pacote` that is used here, in trials and in tests. The published declarations bring ten megabytes of packages. */
declare module 'pacote' {
  import type { Transform } from 'node:stream';

  const pacote: pacote.Pacote;
  namespace pacote {
    /** npm's settings, and how to check and to repeat what is fetched. */
    interface Options {
      readonly [setting: string]: unknown;
      /** A hash in the form of Subresource Integrity. */
      readonly integrity?: string;
      readonly fetchRetries?: number;
      readonly fetchRetryMintimeout?: number;
      readonly fetchRetryMaxtimeout?: number;
      readonly packumentCache?: Map<string, unknown>;
    }

    interface Tarball {
      (spec: string, options?: Options): Promise<Buffer>;
      stream<T>(spec: string, use: (stream: Transform) => Promise<T>, options?: Options): Promise<T>;
    }

    interface Pacote {
      readonly tarball: Tarball;
      extract(spec: string, folder: string, options?: Options): Promise<unknown>;
      manifest(spec: string, options?: Options): Promise<unknown>;
    }
  }
  export = pacote;
}
