// listen: live events as they happen, over server-sent events.
import type { EventName, LiveEvent } from '../../src/client/client.js';
import { formatCounts, formatEvent, objectOf } from '../event-text.js';
import { type Command, listOf, PlainError, type Session, textOf, UsageError } from './command.js';

const listen: Command = {
  name: 'listen',
  usage: '[<object> …]',
  summary: 'Shows live events as they happen, of all objects that you see or of some',
  help: `  --event <name>,…     only events with these names
  --since <position>   begins with the events after this position
  --count <n>          ends after n events`,
  options: { event: { type: 'string', multiple: true }, since: { type: 'string' }, count: { type: 'string' } },
  needsLogin: true,
  arguments: [0, 1_000],
  async run(session, values, objects) {
    const { client, output, signal, url } = session;
    const count = Number(textOf(values, 'count') ?? Number.POSITIVE_INFINITY);
    if (!(count > 0)) throw new UsageError(`--count: ${count} is not a number above 0`);
    const names = await readNames(session, objects);
    const counts = new Map<string, number>();
    let shown = 0;
    const stream = client.events({
      ...(objects.length > 0 && { objects: [...names.keys()] }),
      events: listOf(values, 'event') as EventName[] | undefined,
      since: textOf(values, 'since'),
      signal,
      onState(state, error) {
        if (state === 'live') output.say(`Connected to ${url}`);
        if (state === 'waiting') output.say(`Connection lost${error ? `: ${error.message}` : ''}`);
      },
    });
    for await (const live of stream) {
      const name = nameOf(live, names);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      console.log(output.isJson ? JSON.stringify(live) : formatEvent(live, name, new Date()));
      if (++shown >= count) break;
    }
    output.say(formatCounts(counts));
  },
};

/** Own ids of objects by `_id`. */
async function readNames({ client, signal }: Session, objects: readonly string[]): Promise<Map<string, string>> {
  const only = ['id'] as const;
  const readOne = async (id: string) => {
    const found = await client.objects.find(id, { only, signal });
    if (found === null) throw new PlainError(`There is no object ${id}, or you do not see it`);
    return found;
  };
  // Without objects the names are a nicety: a caller may lack the right to list them.
  const found =
    objects.length > 0
      ? await Promise.all(objects.map(readOne))
      : await client.objects
          .list({ only, signal })
          .all()
          .catch(() => []);
  return new Map(found.map(({ _id, id }) => [_id, String(id)]));
}

function nameOf(live: LiveEvent, names: Map<string, string>): string {
  const object = objectOf(live);
  if (live.event === 'object-packet') names.set(object, live.data.id);
  return names.get(object) ?? (object || live.event);
}

export const LISTEN_COMMANDS: readonly Command[] = [listen];
