/** Writes series as JSON in slices: a million numbers would block the event loop. */

import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { SeriesQuery } from './series/query.js';
import type { ObjectSeries, Series } from './series.js';

const SLICE = 1_000;

/** `{time, speed: {min, max, …}, fuel: null}`. */
export async function toSeriesBody(query: SeriesQuery, { starts, objects }: Series): Promise<Buffer> {
  const writer = new SliceWriter();
  writer.add('{"time":');
  await writer.addNumbers(starts);
  const { paths } = objects[0] ?? query;
  if (paths.length > 0) writer.add(',');
  await addObject(writer, query, objects[0]);
  writer.add('}\n');
  return writer.end();
}

/** `{time, objects: {truck-7: {speed: …}, unknown: null}}`; `found`: the `_id` of each object by the key that names it. */
export async function toSeriesListBody(
  query: SeriesQuery,
  { starts, objects }: Series,
  found: ReadonlyMap<string, string | null>,
): Promise<Buffer> {
  const writer = new SliceWriter();
  writer.add('{"time":');
  await writer.addNumbers(starts);
  writer.add(',"objects":{');
  let isFirst = true;
  for (const [key, id] of found) {
    writer.add(`${isFirst ? '' : ','}${JSON.stringify(key)}:`);
    isFirst = false;
    if (id === null) writer.add('null');
    else {
      writer.add('{');
      await addObject(
        writer,
        query,
        objects.find(({ objectId }) => objectId === id),
      );
      writer.add('}');
    }
  }
  writer.add('}}\n');
  return writer.end();
}

async function addObject(writer: SliceWriter, query: SeriesQuery, object: ObjectSeries | undefined): Promise<void> {
  const { paths } = object ?? query;
  for (const [index, path] of paths.entries()) {
    writer.add(`${index === 0 ? '' : ','}${JSON.stringify(path)}:`);
    const results = object?.columns[index]?.results() ?? null;
    if (results === null) writer.add('null');
    for (const [resultIndex, [name, numbers]] of (results ?? []).entries()) {
      writer.add(`${resultIndex === 0 ? '{' : ','}${JSON.stringify(name)}:`);
      await writer.addNumbers(numbers);
    }
    if (results !== null) writer.add('}');
  }
}

class SliceWriter {
  readonly #pieces: Buffer[] = [];
  #text = '';
  #sinceMs = clock.steadyMs();

  add(text: string): void {
    this.#text += text;
  }

  /** Writes NaN as `null`. */
  async addNumbers(numbers: Float64Array): Promise<void> {
    this.#text += '[';
    for (let from = 0; from < numbers.length; from += SLICE) {
      const texts = Array.from(numbers.subarray(from, from + SLICE), toText);
      this.#text += (from === 0 ? '' : ',') + texts.join(',');
      this.#pieces.push(Buffer.from(this.#text));
      this.#text = '';
      if (clock.steadyMs() - this.#sinceMs < LIMITS.turnMs) continue;
      await clock.nextTurn();
      this.#sinceMs = clock.steadyMs();
    }
    this.#text += ']';
  }

  end(): Buffer {
    return Buffer.concat([...this.#pieces, Buffer.from(this.#text)]);
  }
}

const toText = (value: number): string => (Number.isFinite(value) ? String(value) : 'null');
