/** The head of a bucket: its interval, its columns with their statistics and checksums, and the shapes of its packets. */
import { crc32 } from 'node:zlib';
import { ByteReader, ByteWriter, DamageError } from './bytes.js';
import { compress, decompress } from './compression.js';
import { readShapes, type Shapes } from './shapes.js';
import { readStatistics, type Statistics, writeStatistics } from './statistics.js';

const VERSION = 1;
const CRC_BYTES = 4;

/** What the format allows. Buckets that are written have less: a reader of damaged ones allocates no more than for these. */
export const FORMAT = { rows: 2 ** 14, columns: 2 ** 11, bytes: 2 ** 24 } as const;

/** Packets of one object in their packed form. */
export interface Bucket {
  /** The first and the last time of its packets; ms. They name the bucket if it is damaged. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly head: Buffer;
  /** Each column by the name of its field. A reader needs only those that it reads. */
  readonly columns: ReadonlyMap<string, Buffer>;
}

export interface ColumnHead {
  readonly name: string;
  readonly bytes: number;
  readonly crc: number;
  /** Null for the fields that are in every packet. */
  readonly statistics: Statistics | null;
}

export interface HeadParts {
  readonly rows: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** The size of the unpacked packets. */
  readonly bytes: number;
  readonly columns: readonly ColumnHead[];
}

export interface Head extends HeadParts {
  /** Decompressed when it is called. */
  readonly readShapes: () => Shapes;
}

export function writeHead(parts: HeadParts, shapes: Buffer): Buffer {
  const out = new ByteWriter();
  out.byte(VERSION);
  out.varint(parts.rows);
  out.signed(parts.fromMs);
  out.varint(parts.toMs - parts.fromMs);
  out.varint(parts.bytes);
  out.varint(parts.columns.length);
  for (const { name, bytes, crc, statistics } of parts.columns) {
    out.block(Buffer.from(name));
    out.varint(bytes);
    out.uint32(crc);
    out.byte(statistics === null ? 0 : 1);
    if (statistics !== null) writeStatistics(out, statistics, parts.fromMs);
  }
  out.bytes(compress(shapes));
  const body = out.finish();
  out.uint32(crc32(body));
  return out.finish();
}

/** Throws a DamageError. */
export function readHead({ head, fromMs, toMs }: Pick<Bucket, 'head' | 'fromMs' | 'toMs'>): Head {
  const body = head.subarray(0, Math.max(0, head.length - CRC_BYTES));
  if (head.length <= CRC_BYTES || crc32(body) !== head.readUInt32LE(body.length)) {
    throw new DamageError('the checksum of its head differs');
  }
  const reader = new ByteReader(body);
  const version = reader.byte();
  if (version !== VERSION) throw new DamageError(`version ${version} is unknown; a newer release may have written it`);
  const parts = readParts(reader);
  if (parts.fromMs !== fromMs || parts.toMs !== toMs) throw new DamageError('its head tells of another interval');
  const shapes = reader.take(reader.left);
  const { rows, columns, bytes } = parts;
  return {
    ...parts,
    readShapes: () => {
      const reader = new ByteReader(decompress(shapes, shapesBytesOf(bytes)));
      return readShapes(reader, { rows, columns: columns.length, bytes });
    },
  };
}

function readParts(reader: ByteReader): HeadParts {
  const rows = reader.varint(FORMAT.rows);
  const fromMs = reader.signed();
  const toMs = fromMs + reader.varint();
  const bytes = reader.varint(FORMAT.bytes);
  const count = reader.varint(FORMAT.columns);
  const columns: ColumnHead[] = [];
  for (let i = 0; i < count; i++) {
    const name = reader.block().toString();
    const packedBytes = reader.varint(FORMAT.bytes);
    const crc = reader.uint32();
    const statistics = reader.byte() === 1 ? readStatistics(reader, fromMs) : null;
    columns.push({ name, bytes: packedBytes, crc, statistics });
  }
  return { rows, fromMs, toMs, bytes, columns };
}

/** Columns and shapes take more bytes than the packets only where there are few. */
const FEW_BYTES = 2 ** 16;
export const shapesBytesOf = (bytes: number): number => 2 * bytes + FEW_BYTES;
