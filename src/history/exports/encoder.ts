/** The interface of export formats: each writes packets from BSON bytes. */
import type { ErrorBody } from '../../core/errors.js';
import type { DataType } from '../../core/model.js';
import type { PacketBatch } from '../../packets/packet-stream.js';
import type { JsonWriter } from '../../platform/mongo/bson/json-writer.js';

export interface Encoder {
  /** The fields that the format needs; null for all. */
  readonly fields: readonly string[] | null;
  /** Writes the part before the packets; `first` holds the first packets, or null when there are none. */
  begin(writer: JsonWriter, first: PacketBatch | null): void;
  /** Writes the packet that begins at `start`, or adds it to a group, or does nothing if the format cannot represent it. */
  packet(writer: JsonWriter, memory: Uint8Array, start: number): void;
  /** Of a format that writes packets in groups: `write` is called when the group is full. */
  readonly group?: { isFull(): boolean; write(writer: JsonWriter): Promise<void> };
  /** Writes the part after the packets; `error` tells why packets are missing. */
  end(writer: JsonWriter, error: ErrorBody | null): void | Promise<void>;
}

export interface EncoderOptions {
  /** The requested fields; null for all. */
  readonly only: readonly string[] | null;
  /** The parameters that the object's model declares. */
  readonly declared: ReadonlyMap<string, DataType>;
  /** The name of the object. */
  readonly name: string;
  /** Packets further apart belong to different segments of a track. */
  readonly gapMs: number;
  readonly csv: CsvForm;
}

/** How CSV is written. */
export interface CsvForm {
  /** Whether spreadsheets are to show what was sent. */
  readonly isForSpreadsheet: boolean;
  /** Between cells. */
  readonly separator: ',' | ';' | '\t';
  readonly decimalSign: '.' | ',';
}

/** Appends text, ASCII or not. */
export function appendText(writer: JsonWriter, text: string): void {
  const bytes = Buffer.from(text);
  writer.append(bytes.length, (out, pos) => {
    for (let i = 0; i < bytes.length; i++) out.setUint8(pos + i, bytes[i] as number);
    return pos + bytes.length;
  });
}
