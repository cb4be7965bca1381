// Writes packets as Parquet with zstd by DuckDB: the yardstick of packed history.
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredPacket } from './packed-data.js';

/** The bytes of a Parquet file with all fields of these packets, in the version whose encodings are the smaller ones. */
export async function parquetBytesOf(packets: readonly StoredPacket[], folder: string): Promise<number> {
  // Only a development package: loaded when it is needed.
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const place = await mkdtemp(join(folder, 'parquet-'));
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  try {
    const fields = [...new Set(packets.flatMap(({ sample }) => Object.keys(sample)))].filter((name) => name !== 'time');
    const lines = packets.map(({ id, stampUs, sample }) =>
      [id, stampUs, sample.time, ...fields.map((name) => sample[name] ?? '')].join(','),
    );
    const csv = join(place, 'packets.csv');
    await writeFile(csv, `${lines.join('\n')}\n`);
    const columns = {
      _id: 'VARCHAR',
      _ts: 'BIGINT',
      time: 'BIGINT',
      ...Object.fromEntries(fields.map((name) => [name, 'DOUBLE'])),
    };
    const source = `read_csv('${csv}', header=false, columns=${JSON.stringify(columns).replaceAll('"', "'")})`;
    const constants =
      "true AS online, unhex(repeat('65', 12)) AS _oid, 'truck-7' AS id, unhex(repeat('65', 12)) AS _gid";
    const query = `SELECT * REPLACE (unhex(_id) AS _id), ${constants} FROM ${source}`;
    const sizes = ['v1', 'v2'].map(async (version) => {
      const file = join(place, `${version}.parquet`);
      await connection.run(
        `COPY (${query}) TO '${file}' (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION ${version})`,
      );
      return (await stat(file)).size;
    });
    return Math.min(...(await Promise.all(sizes)));
  } finally {
    connection.closeSync();
    await rm(place, { recursive: true });
  }
}
