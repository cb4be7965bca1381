/** GeoJSON (RFC 7946): each packet with a position is a point, with the packet as its properties. */

import { POSITION_FIELDS, PositionReader } from '../../packets/position.js';
import { type JsonWriter, writeNumber } from '../../platform/mongo/bson/json-writer.js';
import { readShownId } from '../../platform/mongo/bson/reader.js';
import { appendText, type Encoder, type EncoderOptions } from './encoder.js';
import { appendShown, shownRoots } from './ndjson.js';

const NUMBER_BYTES = 32;

export function createGeojsonEncoder({ only }: Pick<EncoderOptions, 'only'>): Encoder {
  const shown = only === null ? null : shownRoots(only);
  const position = new PositionReader();
  let isFirst = true;
  return {
    fields: only === null ? null : [...only, ...POSITION_FIELDS],
    begin: (writer) => writer.raw('{"type":"FeatureCollection","features":[\n'),
    packet(writer, memory, start) {
      if (!position.read(memory, start)) return;
      if (!isFirst) writer.raw(',\n');
      isFirst = false;
      writer.raw(`{"type":"Feature","id":"${readShownId(memory, start)}","geometry":`);
      appendPoint(writer, position);
      writer.raw(',"properties":');
      if (shown === null) writer.document(memory, start);
      else appendShown(writer, memory, start, shown);
      writer.raw('}');
    },
    end(writer, error) {
      writer.raw('\n]');
      if (error !== null) appendText(writer, `,"error":${JSON.stringify(error)}`);
      writer.raw('}\n');
    },
  };
}

function appendPoint(writer: JsonWriter, { longitude, latitude, height }: PositionReader): void {
  writer.raw('{"type":"Point","coordinates":[');
  appendNumber(writer, longitude);
  writer.raw(',');
  appendNumber(writer, latitude);
  if (!Number.isNaN(height)) {
    writer.raw(',');
    appendNumber(writer, height);
  }
  writer.raw(']}');
}

export const appendNumber = (writer: JsonWriter, value: number): void =>
  writer.append(NUMBER_BYTES, (out, pos) => writeNumber(out, pos, value));
