/**
 * Commands whose reply stays the bytes that it came as. The driver's `Db.command` would read some of it into objects, and
 * passes its options on in objects that V8 of Node.js 20 makes a new shape for each time (docs/development.md): both together cost
 * a tenth of the process' time.
 */
import type { ClientSession, Db, Document } from 'mongodb';
import { DocumentSequence } from 'mongodb/lib/cmap/commands.js';
import { executeOperation } from 'mongodb/lib/operations/execute_operation.js';
import { type Reply, RunCommandOperation } from 'mongodb/lib/operations/run_command.js';

/** Sends it to the primary, once. Throws what the driver throws; `session`: one of its own unless given. */
export function runRawCommand(db: Db, command: Document, session?: ClientSession): Promise<Buffer> {
  return executeOperation(db.client, new RawCommand(db, command, session));
}

/** Documents as a member of a command that takes a list of them there: their bytes go as they are, nothing is serialized again. */
export function sequenceOf(field: string, documents: readonly Uint8Array[]): unknown {
  const sequence = new DocumentSequence(field);
  for (const bytes of documents) sequence.push(bytes, bytes);
  return sequence;
}

class RawCommand extends RunCommandOperation<Buffer> {
  constructor(db: Db, command: Document, session: ClientSession | undefined) {
    const namespace = { withCollection: () => ({ db: db.databaseName }) };
    // To a copy of this kind the driver can add members without a new shape.
    super(namespace, Object.assign({}, command), { session });
  }

  override buildOptions(timeoutContext: unknown) {
    return { session: this.session, readPreference: this.readPreference, timeoutContext, directConnection: undefined };
  }

  override handleOk(reply: Reply): Buffer {
    const { buffer, byteOffset, byteLength } = reply.toBytes();
    return Buffer.from(buffer, byteOffset, byteLength);
  }
}
