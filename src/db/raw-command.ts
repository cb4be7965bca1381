/**
 * Commands whose reply stays the bytes that it came as. The driver's `Db.command` would read some of it into objects, and
 * passes its options on in objects that V8 of Node.js 20 makes a new shape for each time (src/README.md): both together cost
 * a tenth of the process' time.
 */
import type { ClientSession, Db, Document } from 'mongodb';
import { executeOperation } from 'mongodb/lib/operations/execute_operation.js';
import { type Reply, RunCommandOperation } from 'mongodb/lib/operations/run_command.js';

/** Sends it to the primary, once. Throws what the driver throws; `session`: one of its own unless given. */
export function runRawCommand(db: Db, command: Document, session?: ClientSession): Promise<Buffer> {
  return executeOperation(db.client, new RawCommand(db, command, session));
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
