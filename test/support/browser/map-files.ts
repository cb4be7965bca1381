/** A map of the operator's in its smallest form: one tile of one colour for the whole world. */
import { crc32, deflateSync, gzipSync } from 'node:zlib';

const SIDE = 256;

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const length = Buffer.alloc(4);
  const sum = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** A picture of 256 × 256 pixels. */
export function createPng(rgb: readonly [number, number, number]): Buffer {
  const row = Buffer.from([0, ...Array.from({ length: SIDE }, () => rgb).flat()]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(SIDE, 0);
  head.writeUInt32BE(SIDE, 4);
  head.set([8, 2], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.concat(Array.from({ length: SIDE }, () => row)))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);

const field = (number: number, bytes: readonly number[]): number[] => [
  (number << 3) | 2,
  ...varint(bytes.length),
  ...bytes,
];
const integer = (number: number, value: number): number[] => [number << 3, ...varint(value)];
const EXTENT = 4_096;
const POLYGON = 3;

/** A vector tile (Mapbox Vector Tile 2.1) with one layer, which covers all of it. */
export function createVectorTile(layer: string): Buffer {
  const zigzag = (value: number): number[] => varint(value < 0 ? -2 * value - 1 : 2 * value);
  // Moves to the corner, draws three lines, closes the ring.
  const geometry = [
    ...varint((1 << 3) | 1),
    0,
    0,
    ...varint((3 << 3) | 2),
    ...[EXTENT, 0, 0, EXTENT, -EXTENT, 0].flatMap(zigzag),
    ...varint((1 << 3) | 7),
  ];
  const feature = [...integer(3, POLYGON), ...field(4, geometry)];
  const parts = [...integer(15, 2), ...field(1, [...Buffer.from(layer)]), ...field(2, feature), ...integer(5, EXTENT)];
  return Buffer.from(field(3, parts));
}

interface TileForm {
  readonly isVector?: boolean;
  readonly metadata?: object;
}

/** A PMTiles file (version 3) with this one tile at zoom 0: an image, or a vector tile that is compressed with gzip. */
export function createPmTiles(image: Buffer, { isVector = false, metadata: about = {} }: TileForm = {}): Buffer {
  const tile = isVector ? gzipSync(image) : image;
  const directory = Buffer.from([1, 0, 1, ...varint(tile.length), 1]);
  const metadata = Buffer.from(JSON.stringify(about));
  const header = Buffer.alloc(127);
  header.write('PMTiles');
  header[7] = 3;
  const root = header.length;
  const data = root + directory.length + metadata.length;
  const sizes = [root, directory.length, root + directory.length, metadata.length, data, 0, data, tile.length, 1, 1, 1];
  for (const [index, size] of sizes.entries()) header.writeBigUInt64LE(BigInt(size), 8 + index * 8);
  // Clustered; directories are not compressed; tiles with gzip or not at all; MVT or PNG; zoom 0 only.
  header.set([1, 1, ...(isVector ? [2, 1] : [1, 2]), 0, 0], 96);
  for (const [index, degrees] of [-180, -85, 180, 85].entries()) header.writeInt32LE(degrees * 1e7, 102 + index * 4);
  return Buffer.concat([header, directory, metadata, tile]);
}
