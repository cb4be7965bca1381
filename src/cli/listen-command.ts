/** `vigil listen`: shows live events as they happen, and sends them to an address as Vigil calls a webhook. */
import type { EventName, EventState, LiveEvent, VigilError } from '../client/client.js';
import { PlainError, parsePositive } from '../program.js';
import { type Command, listOf, type Session, textOf, type Values } from './command.js';
import { formatCounts, formatEvent, objectOf } from './event-text.js';
import { createForwarder, type Forwarder } from './forward.js';
import type { Output } from './output.js';

const QUIET_INTERVAL_MS = 100;

const listen: Command = {
  name: 'listen',
  usage: '[<object> …]',
  summary: 'Shows live events as they happen, of all objects that you see or of some',
  help: `  --event <name>,…     only events with these names
  --since <position>   begins with the events after this position
  --count <n>          ends after n events
  --quiet              shows how many events came instead of the events
  --forward <address>  also sends each event of an object to this address, such as http://localhost:3000, as Vigil calls a
                       webhook: signed with WEBHOOK_SECRET, or with a secret that it prints; three times if it fails`,
  options: {
    event: { type: 'string', multiple: true },
    since: { type: 'string' },
    count: { type: 'string' },
    quiet: { type: 'boolean' },
    forward: { type: 'string' },
  },
  needsLogin: true,
  arguments: [0, 1_000],
  async run(session, values, objects) {
    const { client, output, signal, url } = session;
    const maxEvents = parsePositive('count', textOf(values, 'count'), Number.POSITIVE_INFINITY);
    const names = await readNames(session, objects);
    const forwarder = startForwarding(session, textOf(values, 'forward'));
    const print = createPrinter(output, values);
    const counts = new Map<string, number>();
    let received = 0;
    const stream = client.events({
      ...(objects.length > 0 && { objects: [...names.keys()] }),
      events: listOf(values, 'event') as EventName[] | undefined,
      since: textOf(values, 'since'),
      signal,
      onState: createStateReport(output, url),
    });
    for await (const live of stream) {
      const name = nameOf(live, names);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      print(live, name);
      if (live.event.startsWith('object-')) forwarder?.forward(live);
      received++;
      if (received >= maxEvents) break;
    }
    if (!signal.aborted) await forwarder?.idle();
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
  // Without arguments the names are optional: the caller may lack the right to list objects.
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

function createPrinter(output: Output, values: Values): (live: LiveEvent, name: string) => void {
  if (values.quiet === true) return createCounter(output);
  if (output.isJson) return (live) => console.log(JSON.stringify(live));
  return (live, name) => console.log(formatEvent(live, name, new Date()));
}

function createCounter(output: Output): () => void {
  let count = 0;
  let shownMs = 0;
  return () => {
    count++;
    if (Date.now() - shownMs < QUIET_INTERVAL_MS) return;
    shownMs = Date.now();
    output.progress(`${count} events`);
  };
}

/** Says once that the connection is lost, however many attempts fail for the same reason. */
function createStateReport(output: Output, url: string): (state: EventState, error?: VigilError) => void {
  let reported = '';
  return (state, error) => {
    if (state === 'live') {
      output.say(`Connected to ${url}`);
      reported = '';
    }
    if (state !== 'waiting') return;
    const message = `No connection${error === undefined ? '' : `: ${error.message}`}`;
    if (message !== reported) output.say(message);
    reported = message;
  };
}

function startForwarding({ output, env }: Session, address: string | undefined): Forwarder | null {
  if (address === undefined) return null;
  const given = env.WEBHOOK_SECRET;
  const forwarder = createForwarder(address, given, (text) => output.say(`→ ${text}`));
  output.say(`Forwarding to ${address}`);
  if (!given) output.say(`The receiver verifies with WEBHOOK_SECRET=${forwarder.secret}`);
  return forwarder;
}

export const LISTEN_COMMANDS: readonly Command[] = [listen];
