// Measures rules (R): what they cost the storing of packets, how soon alarms follow from packets and from time alone, and what a large
// fleet with rules takes.
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { compareStoring } from './comparing.js';
import { call, create } from './neighbours/stage.js';
import { whilePosting } from './posting.js';
import { measureFleet, type RuleBench } from './rule-fleet.js';
import { format, percentile } from './stats.js';

const RULES = 10;
const UNMATCHED = 100;
const FENCES = 1_000;
const PACKETS_PER_SECOND = 5_000;
const PACKETS_PER_POST = 100;
const ALARMS = 60;
const TIMERS = 30;
/** At a small scale there are fewer of both. */
const LEAST_ALARMS = 10;
const TIMER_MS = 1_000;
const PAUSE_MS = 50;
const LATEST_MS = 60_000;

/** The lines of the results as Markdown tables. */
export async function measureRules(bench: RuleBench): Promise<string> {
  const say = (lines: readonly string[]): readonly string[] => {
    for (const line of lines) bench.say(line);
    return lines;
  };
  const storing = ['| | Rules | per second | p50 ms | p99 ms | |', '|---|---|---:|---:|---:|---|'];
  storing.push(...say(await compareUnmatched(bench)));
  storing.push(...say(await compareEvaluated(bench)));
  storing.push(...say(await compareFences(bench)));
  const soon = ['| Alarms beside 5,000 packets/s × 10 rules | number | p50 ms | p99 ms |', '|---|---:|---:|---:|'];
  soon.push(...say(await measureLatency(bench)));
  const fleet = say(await measureFleet(bench));
  return [storing, soon, fleet].map((lines) => lines.join('\n')).join('\n\n');
}

const hotRule = (name: string, more: object = {}): object => ({
  name,
  when: { param: 't', op: '>', value: 8 },
  ...more,
});

/** Creates entities, runs, and removes them. */
async function having<T>(
  { server: { url, token } }: RuleBench,
  entities: readonly { store: string; fields: object }[],
  run: () => Promise<T>,
): Promise<T> {
  const made: string[] = [];
  try {
    for (const { store, fields } of entities) made.push(`${store}/${await create(url, token, store, fields)}`);
    return await run();
  } finally {
    for (const path of made.reverse()) await call(url, token, 'DELETE', path);
  }
}

const toRule = (fields: object) => ({ store: 'rules', fields });

async function compareUnmatched(bench: RuleBench): Promise<readonly string[]> {
  const { url, token } = bench.server;
  const object = await create(url, token, 'objects', { id: `unmatched-${Date.now()}`, name: 'x' });
  const rules = Array.from({ length: UNMATCHED }, () =>
    toRule(hotRule('unmatched', { select: { objects: [object] } })),
  );
  const what = { without: 'without rules', with: `with ${UNMATCHED} that select another object` };
  return compareStoring(bench, ['W6', 'W6b'], what, (run) => having(bench, rules, run));
}

/** Each packet is evaluated by each rule, and changes no state. */
async function compareEvaluated(bench: RuleBench): Promise<readonly string[]> {
  const ofSpeed = (nth: number): object => ({ param: 'speed', op: '>', value: 1_000 + nth });
  const rules = Array.from({ length: RULES }, (_, nth) => toRule({ name: 'evaluated', when: ofSpeed(nth) }));
  const what = { without: 'without rules', with: `with ${RULES} that evaluate each packet`, packets: PACKETS_PER_POST };
  return compareStoring(bench, ['W6b'], what, (run) => having(bench, rules, run));
}

/** All objects are near one another: some fences are around them, most are elsewhere. */
async function compareFences(bench: RuleBench): Promise<readonly string[]> {
  const { url, token } = bench.server;
  const fences: string[] = [];
  for (let nth = 0; nth < FENCES; nth++) {
    const coordinates = [11.5 + (nth % 40) / 100, 48.1 + Math.floor(nth / 40) / 100];
    const fields = { name: `fence ${nth}`, geometry: { type: 'Point', coordinates }, radius: 700 };
    fences.push(await create(url, token, 'geofences', fields));
  }
  const rule = toRule({ name: 'fences', when: { geofence: fences, is: 'inside' } });
  const what = { without: 'without rules', with: `with one of ${FENCES} geofences`, packets: PACKETS_PER_POST };
  return compareStoring(bench, ['W6b'], what, (run) => having(bench, [rule], run));
}

async function measureLatency(bench: RuleBench): Promise<readonly string[]> {
  const ofSpeed = { param: 'speed', op: '>', value: 1_000 };
  const evaluated = Array.from({ length: RULES }, () => toRule({ name: 'evaluated', when: ofSpeed }));
  const paced = { packetsPerSecond: PACKETS_PER_SECOND, packetsPerPost: PACKETS_PER_POST };
  const scaled = (count: number): number => Math.max(LEAST_ALARMS, Math.round(count * Math.min(1, bench.scale)));
  return having(bench, evaluated, () =>
    whilePosting({ target: bench.server, size: bench.size, paced }, async () => {
      const atOnce = await timeAlarms(bench, { count: scaled(ALARMS), forMs: 0 });
      const timed = await timeAlarms(bench, { count: scaled(TIMERS), forMs: TIMER_MS });
      return [toLine('from the answer to the event', atOnce), toLine(`after \`for\`, beyond ${TIMER_MS} ms`, timed)];
    }),
  );
}

const toLine = (title: string, all: readonly number[]): string =>
  `| ${title} | ${all.length} | ${format(percentile(all, 0.5))} | ${format(percentile(all, 0.99))} |`;

/** How long alarms take that are due at once, or some time after their packet, ms. */
async function timeAlarms(bench: RuleBench, { count, forMs }: { count: number; forMs: number }): Promise<number[]> {
  const { url, token } = bench.server;
  const object = await create(url, token, 'objects', { id: `timed-${Date.now()}`, name: 'x' });
  const rule = toRule(hotRule('timed', { select: { objects: [object] }, for: forMs }));
  const socket = io(url, { transports: ['websocket'], extraHeaders: { authorization: `Bearer ${token}` } });
  await once(socket as unknown as NodeJS.EventEmitter, 'connect');
  const delays: number[] = [];
  try {
    await having(bench, [rule], async () => {
      for (let nth = 0; nth < count; nth++, await wait(PAUSE_MS)) {
        const raised = new Promise((resolve) => socket.once('alarm-raised', resolve));
        await call(url, token, 'POST', `objects/${object}/packets`, { t: 9 });
        const answeredMs = performance.now();
        await Promise.race([raised, wait(LATEST_MS)]);
        delays.push(performance.now() - answeredMs - forMs);
        const cleared = new Promise((resolve) => socket.once('alarm-cleared', resolve));
        await call(url, token, 'POST', `objects/${object}/packets`, { t: 1 });
        await Promise.race([cleared, wait(LATEST_MS)]);
      }
    });
  } finally {
    socket.disconnect();
  }
  return delays;
}
