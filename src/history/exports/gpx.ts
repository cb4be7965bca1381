/** GPX 1.1: the packets with a position as one track; speed and course in the extension that most programs read. */

import { POSITION_FIELDS, PositionReader } from '../../packets/position.js';
import { type JsonWriter, writeAscii } from '../../platform/mongo/bson/json-writer.js';
import { appendText, type Encoder, type EncoderOptions } from './encoder.js';
import { appendNumber } from './geojson.js';
import { toReason } from './ndjson.js';

const HEAD = `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="Vigil" xmlns="http://www.topografix.com/GPX/1/1" xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2">
<trk>`;
/** gpx.xsd allows elements of other namespaces only. */
const NAMESPACE = 'urn:vigil:export';
const KMH_PER_MS = 3.6;
/** XML Schema, `dateTime`: years of four digits. */
const MIN_TIME_MS = Date.parse('0001-01-01T00:00:00Z');
const MAX_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z');

export function createGpxEncoder({ name, gapMs }: Pick<EncoderOptions, 'name' | 'gapMs'>): Encoder {
  const position = new PositionReader();
  let lastMs: number | null = null;
  return {
    fields: POSITION_FIELDS,
    begin: (writer) => appendText(writer, `${HEAD}<name>${toXml(name)}</name>\n<trkseg>\n`),
    packet(writer, memory, start) {
      if (!position.read(memory, start)) return;
      const { timeMs } = position;
      if (lastMs !== null && Math.abs(timeMs - lastMs) > gapMs) writer.raw('</trkseg>\n<trkseg>\n');
      lastMs = timeMs;
      appendTrackPoint(writer, position);
    },
    end(writer, error) {
      writer.raw('</trkseg>\n</trk>\n');
      if (error !== null)
        appendText(
          writer,
          `<extensions><incomplete xmlns="${NAMESPACE}">${toXml(toReason(error))}</incomplete></extensions>\n`,
        );
      writer.raw('</gpx>\n');
    },
  };
}

function appendTrackPoint(
  writer: JsonWriter,
  { latitude, longitude, height, timeMs, speed, course }: PositionReader,
): void {
  writer.raw('<trkpt lat="');
  appendDecimal(writer, latitude);
  writer.raw('" lon="');
  // gpx.xsd, `longitudeType`: less than 180.
  appendDecimal(writer, longitude === 180 ? -180 : longitude);
  writer.raw('">');
  if (!Number.isNaN(height)) appendElement(writer, 'ele', height);
  if (timeMs >= MIN_TIME_MS && timeMs <= MAX_TIME_MS) writer.raw(`<time>${new Date(timeMs).toISOString()}</time>`);
  // The schema of the extension forbids other values.
  const hasSpeed = speed >= 0;
  const hasCourse = course >= 0 && course < 360;
  if (hasSpeed || hasCourse) {
    writer.raw('<extensions><gpxtpx:TrackPointExtension>');
    if (hasSpeed) appendElement(writer, 'gpxtpx:speed', Math.round((speed / KMH_PER_MS) * 1_000) / 1_000);
    if (hasCourse) appendElement(writer, 'gpxtpx:course', course);
    writer.raw('</gpxtpx:TrackPointExtension></extensions>');
  }
  writer.raw('</trkpt>\n');
}

function appendElement(writer: JsonWriter, name: string, value: number): void {
  writer.raw(`<${name}>`);
  appendDecimal(writer, value);
  writer.raw(`</${name}>`);
}

/** XML Schema, `decimal`: without an exponent. */
function appendDecimal(writer: JsonWriter, value: number): void {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-6 && size < 1e21)) appendNumber(writer, value);
  else writer.append(32, (out, pos) => writeAscii(out, pos, size < 1 ? value.toFixed(12) : '0'));
}

const ENTITIES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };
/** Escapes text and drops characters that XML 1.0 forbids. */
const toXml = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML forbids
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
    .replace(/[<>&"]/g, (character) => ENTITIES[character] as string);
