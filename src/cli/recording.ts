/** Recordings of `vigil device`: the rows of a CSV file as packets, each with an id by which it is stored once. */
import { createHash } from 'node:crypto';
import { CsvError, parse } from 'csv-parse/sync';
import { isReservedName } from '../core/json.js';
import { explainDeviceTime, parseDeviceTime } from '../core/time.js';
import { PlainError } from '../program.js';

const SERVICE_FIELDS = ['_id', '_ts', '_oid', '_gid', 'id'];
// Only JSON numbers: "007" and "+5" are codes and stay text, and so is "12E4"; programs write 1e3, 1e-05 and 1.2E+05.
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+|E[+-]\d+)?$/;

/** The packet of one row of a recording. */
export type Packet = Record<string, number | boolean | string>;

/** Converts one row to a packet without its empty cells. `line` appears in errors. */
export function toPacket(columns: string[], cells: string[], line: number): Packet {
  const given = cells[0] ?? '';
  const time = parseDeviceTime(given);
  if (time === null) throw new PlainError(`Row ${line}: "${given}" is not a time: ${explainDeviceTime(given)}`);
  const packet: Packet = { time };
  columns.forEach((column, index) => {
    const cell = cells[index] ?? '';
    if (index > 0 && cell !== '') packet[column] = toValue(cell);
  });
  return packet;
}

function toValue(cell: string): number | boolean | string {
  if (/^(true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  const value = Number(cell);
  // A long serial number would lose its last digits.
  const exact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return NUMBER.test(cell) && exact ? value : cell;
}

/** Parses a recording. Throws an error that names the malformed line, row or column. */
export function parseRecording(csv: string): Packet[] {
  const [columns = [], ...rows] = parseRows(csv);
  if (columns[0] !== 'time') throw new PlainError(`The first column must be "time", not "${columns[0] ?? ''}"`);
  const reserved = columns.find(isReservedName);
  if (reserved !== undefined) throw new PlainError(`A column cannot be named "${reserved}"`);
  const wrong = columns.find((name, index) => SERVICE_FIELDS.includes(name) || columns.indexOf(name) !== index);
  if (wrong !== undefined) throw new PlainError(`The column "${wrong}" is set by the service, or named twice`);
  return rows.map((cells, index) => toPacket(columns, cells, index + 2));
}

function parseRows(csv: string): string[][] {
  try {
    return parse(csv, { bom: true, trim: true, skip_empty_lines: true });
  } catch (error) {
    throw error instanceof CsvError ? new PlainError(error.message) : error;
  }
}

/** Assigns each packet an id that is the same in every replay for this object. Equal rows get different ids. */
export function withIds(objectId: string, packets: readonly Packet[]): Packet[] {
  const seen = new Map<string, number>();
  return packets.map((packet) => {
    const content = JSON.stringify(packet);
    const nth = seen.get(content) ?? 0;
    seen.set(content, nth + 1);
    const hash = createHash('sha256').update(`${objectId}\n${nth}\n${content}`);
    return { _id: hash.digest('hex').slice(0, 24), ...packet };
  });
}

/** Counts the stored rows by binary search, since a replay stores rows in order without gaps. */
export async function storedCount(count: number, isStored: (index: number) => Promise<boolean>): Promise<number> {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isStored(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
