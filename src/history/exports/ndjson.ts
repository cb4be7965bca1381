/** NDJSON: each packet is one line. */
import type { ErrorBody } from '../../core/errors.js';
import {
  type JsonWriter,
  textBound,
  writeAscii,
  writeName,
  writeValue,
} from '../../platform/mongo/bson/json-writer.js';
import { eachMember, nameAt } from '../../platform/mongo/bson/members.js';
import { BSON_TYPES } from '../../platform/mongo/bson/reader.js';
import { appendText, type Encoder, type EncoderOptions } from './encoder.js';

export function createNdjsonEncoder({ only }: Pick<EncoderOptions, 'only'>): Encoder {
  const shown = only === null ? null : shownRoots(only);
  return {
    fields: only,
    begin: () => undefined,
    packet(writer, memory, start) {
      if (shown === null) writer.document(memory, start);
      else appendShown(writer, memory, start, shown);
      writer.raw('\n');
    },
    end(writer, error) {
      if (error !== null) appendText(writer, `${JSON.stringify(error)}\n`);
    },
  };
}

/** The top-level members to show: the stream always reads `time` and `_ts`, even if they are not requested. */
export const shownRoots = (only: readonly string[]): ReadonlySet<string> =>
  new Set(['_id', ...only.map((path) => path.split('.')[0] as string)]);

/** Appends the packet as a JSON object with only these members. */
export function appendShown(writer: JsonWriter, memory: Uint8Array, start: number, shown: ReadonlySet<string>): void {
  writer.append(textBound(memory, start), (out, begin) => {
    let pos = writeAscii(out, begin, '{');
    eachMember(memory, start, (type, nameStart, nameEnd, valueStart) => {
      if (type === BSON_TYPES.UNDEFINED || !shown.has(nameAt(memory, nameStart, nameEnd))) return;
      if (pos > begin + 1) pos = writeAscii(out, pos, ',');
      pos = writeValue(out, writeName(out, pos, memory, nameStart, nameEnd), type, memory, valueStart);
    });
    return writeAscii(out, pos, '}');
  });
}

/** A line that tells why the export is incomplete, also for other formats. */
export const toReason = ({ code, helper }: ErrorBody): string => `${code}: ${helper?.message ?? 'internal error'}`;
