/** Declares the internal modules of the driver that `raw-command.ts` uses (mongodb 7.8). */
declare module 'mongodb/lib/operations/run_command.js' {
  import type { ClientSession, Document, ReadPreference } from 'mongodb';

  interface Namespace {
    readonly db: string;
  }

  export interface Reply {
    /** The bytes of the reply, without a copy. */
    toBytes(): Uint8Array<ArrayBuffer>;
  }

  export class RunCommandOperation<Result> {
    constructor(
      namespace: { withCollection(name: string): Namespace },
      command: Document,
      options: { readonly session: ClientSession | undefined },
    );
    readonly session: ClientSession | undefined;
    readonly readPreference: ReadPreference;
    /** The options of one attempt. */
    buildOptions(timeoutContext: unknown): object;
    handleOk(reply: Reply): Result;
  }
}

declare module 'mongodb/lib/operations/execute_operation.js' {
  import type { MongoClient } from 'mongodb';
  import type { RunCommandOperation } from 'mongodb/lib/operations/run_command.js';

  export function executeOperation<Result>(
    client: MongoClient,
    operation: RunCommandOperation<Result>,
  ): Promise<Result>;
}

declare module 'mongodb/lib/cmap/commands.js' {
  /** Documents of a command as bytes beside its body (MongoDB wire protocol, OP_MSG, sections of kind 1). */
  export class DocumentSequence {
    constructor(field: string);
    /** `document` is only for listeners of command monitoring. */
    push(document: unknown, bytes: Uint8Array): void;
  }
}
