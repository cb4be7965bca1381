/** Well-known binary (OGC 06-103r4), as ISO 13249-3 extends it for heights. */
import type { PositionReader } from '../../packets/position.js';

const POINT = 1;
const POINT_Z = 1_001;
const HEAD_BYTES = 5;

/** Returns a point of longitude, latitude and, if it is known, the height. */
export function toPoint({ longitude, latitude, height }: PositionReader): Buffer {
  const hasHeight = !Number.isNaN(height);
  const point = Buffer.allocUnsafe(HEAD_BYTES + (hasHeight ? 24 : 16));
  point.writeUInt8(1, 0); // little-endian
  point.writeUInt32LE(hasHeight ? POINT_Z : POINT, 1);
  point.writeDoubleLE(longitude, HEAD_BYTES);
  point.writeDoubleLE(latitude, HEAD_BYTES + 8);
  if (hasHeight) point.writeDoubleLE(height, HEAD_BYTES + 16);
  return point;
}
