/** The documents of one reply of the database, as views of its memory. */
import type { JsonObject } from '../../../core/json.js';
import { writeJson } from './json-writer.js';
import { BSON_TYPES, documentAt, findField, findValue, int32, valueEnd, valueStart, viewOf } from './reader.js';

const { ARRAY, DOCUMENT, INT64, STRING, TIMESTAMP } = BSON_TYPES;

export interface Documents {
  /** The total size of the documents. */
  readonly bytes: number;
  /** The memory of the documents. Thousands of views, or of steps of an iterator, would cost more than the work on them. */
  readonly memory: Buffer;
  /** The offset of the first document; -1 when there is none. */
  first(): number;
  /** The offset of the document after the one that begins at `start`; -1 after the last one. */
  next(start: number): number;
  starts(): number[];
  readonly documents: Buffer[];
}

export interface DocumentBatch extends Documents {
  /** 0 after the last batch. */
  readonly cursorId: bigint;
  readonly namespace: string;
  /** The time of the snapshot that the cursor reads: eight bytes; null if it reads none. */
  readonly snapshot: Buffer | null;
}

/** A view of the member `cursor` of a reply. */
export function cursorIn(reply: Uint8Array): Buffer {
  const cursor = findField(reply, 'cursor', DOCUMENT);
  if (cursor === null) throw new TypeError('a reply without a cursor');
  return cursor;
}

/** Reads the member `cursor` of a reply; the documents are views of its memory. */
export function readBatch(cursor: Uint8Array): DocumentBatch {
  const documents = findField(cursor, 'firstBatch', ARRAY) ?? findField(cursor, 'nextBatch', ARRAY);
  const id = findValue(cursor, 0, 'id', INT64);
  const namespace = findField(cursor, 'ns', STRING);
  if (!documents || id === -1 || !namespace) throw new TypeError('not the cursor of a reply');
  return new ReplyBatch(documents, viewOf(cursor, id, id + 8).readBigInt64LE(), { cursor, namespace });
}

/** Parses documents through JSON: in a third of the time that the driver takes for as many small ones. */
export function parseDocuments(documents: Documents): JsonObject[] {
  const text = writeJson((writer) => {
    writer.raw('[');
    for (const [nth, start] of documents.starts().entries()) {
      if (nth > 0) writer.raw(',');
      writer.document(documents.memory, start);
    }
    writer.raw(']');
  });
  return JSON.parse(text.toString()) as JsonObject[];
}

class ReplyBatch implements DocumentBatch {
  readonly memory: Buffer;
  readonly cursorId: bigint;
  readonly #cursor: Uint8Array;
  readonly #namespace: Buffer;

  constructor(
    buffer: Buffer,
    cursorId: bigint,
    { cursor, namespace }: { readonly cursor: Uint8Array; readonly namespace: Buffer },
  ) {
    this.memory = buffer;
    this.cursorId = cursorId;
    this.#cursor = cursor;
    this.#namespace = namespace;
  }

  get snapshot(): Buffer | null {
    return findField(this.#cursor, 'atClusterTime', TIMESTAMP);
  }

  get namespace(): string {
    return this.#namespace.toString('utf8', 4, this.#namespace.length - 1);
  }

  get bytes(): number {
    return this.memory.length;
  }

  first(): number {
    return this.#documentIn(4);
  }

  next(start: number): number {
    return this.#documentIn(start + int32(this.memory, start));
  }

  starts(): number[] {
    const starts: number[] = [];
    for (let start = this.first(); start !== -1; start = this.next(start)) starts.push(start);
    return starts;
  }

  get documents(): Buffer[] {
    return this.starts().map((start) => documentAt(this.memory, start));
  }

  /** The offset of the document in the element of the list that begins at `pos`. */
  #documentIn(pos: number): number {
    const end = this.memory.length - 1;
    if (pos >= end) return -1;
    const start = valueStart(this.memory, pos + 1);
    valueEnd(this.memory, DOCUMENT, start, end);
    return start;
  }
}
