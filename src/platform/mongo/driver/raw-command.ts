/**
 * Runs commands whose reply stays bytes. The driver's `Db.command` would parse a part of the reply into objects, and passes its
 * options in objects for which V8 of Node.js 20 creates a new shape each time (docs/development.md): both together cost a tenth
 * of the process' time.
 */
import type { ClientSession, Db, Document } from 'mongodb';
import { DocumentSequence } from 'mongodb/lib/cmap/commands.js';
import { executeOperation } from 'mongodb/lib/operations/execute_operation.js';
import { type Reply, RunCommandOperation } from 'mongodb/lib/operations/run_command.js';

/** Sends the command to the primary once, in a session of its own unless `session` is given. Does not map errors. */
export function runRawCommand(db: Db, command: Document, session?: ClientSession): Promise<Buffer> {
  return executeOperation(db.client, new RawCommand(db, command, session));
}

/** Documents as a list member of a command, sent as bytes without serializing them again. */
export function sequenceOf(field: string, documents: readonly Uint8Array[]): unknown {
  const sequence = new DocumentSequence(field);
  for (const bytes of documents) sequence.push(bytes, bytes);
  return sequence;
}

class RawCommand extends RunCommandOperation<Buffer> {
  constructor(db: Db, command: Document, session: ClientSession | undefined) {
    const namespace = { withCollection: () => ({ db: db.databaseName }) };
    // The driver can add members to such a copy without a new shape.
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
