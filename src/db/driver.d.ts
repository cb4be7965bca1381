/** What `raw-command.ts` uses of the driver beneath what it declares itself (mongodb 7.8). */
declare module 'mongodb/lib/operations/run_command.js' {
  import type { ClientSession, Document, ReadPreference } from 'mongodb';

  interface Namespace {
    readonly db: string;
  }

  export interface Reply {
    /** The reply alone, in the memory it came in. */
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
    /** The options of one try. */
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
  /** Documents of a command that go beside it, as bytes (MongoDB wire protocol, OP_MSG, sections of kind 1). */
  export class DocumentSequence {
    constructor(field: string);
    /** `document` is what those who listen to commands are told of it. */
    push(document: unknown, bytes: Uint8Array): void;
  }
}
