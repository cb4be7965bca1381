/** The encoder of each format. */
import type { ExportFormat } from '../../packets/export-format.js';
import { createCsvEncoder } from './csv.js';
import type { Encoder, EncoderOptions } from './encoder.js';
import { createGeojsonEncoder } from './geojson.js';
import { createGpxEncoder } from './gpx.js';
import { createNdjsonEncoder } from './ndjson.js';
import { createParquetEncoder } from './parquet.js';

const CREATORS: Readonly<Record<ExportFormat, (options: EncoderOptions) => Encoder>> = {
  csv: createCsvEncoder,
  ndjson: createNdjsonEncoder,
  geojson: createGeojsonEncoder,
  gpx: createGpxEncoder,
  parquet: createParquetEncoder,
};

export const createEncoder = (format: ExportFormat, options: EncoderOptions): Encoder => CREATORS[format](options);
