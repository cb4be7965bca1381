/** Formats events as text. */

type Json = Record<string, unknown>;

const HIDDEN = ['_id', '_ts', '_oid', '_gid', 'id', 'time'];
const OLD_MS = 60_000;

/** The `_id` of the object that an event is about. */
export function objectOf({ data }: { readonly data: object }): string {
  const { _oid, id } = data as Json;
  return String(_oid ?? id ?? '');
}

/** Formats an event as one line. `name` is the object's own id; `now` the local time of arrival. */
export function formatEvent(live: { readonly event: string; readonly data: object }, name: string, now: Date): string {
  const { event } = live;
  const data = live.data as Json;
  if (event === 'object-packet') return `${clock(now)}  ${plain(name)}  ${formatPacket(data, now)}`;
  if (event === 'object-update') return `${clock(now)}  ${plain(name)}  ${formatUpdate(data)}`;
  if (event.startsWith('object-command-')) return `${clock(now)}  ${plain(name)}  ${formatCommand(data)}`;
  if (event.startsWith('alarm-')) return `${clock(now)}  ${plain(name)}  ${formatAlarm(event, data)}`;
  if (event === 'gap') return `${clock(now)}  gap: events before this moment are lost ${formatValue(data)}`;
  return `${clock(now)}  ${plain(event)}  ${formatValue(data)}`;
}

function formatPacket(packet: Json, now: Date): string {
  const shown = Object.entries(packet).filter(([key, value]) => !HIDDEN.includes(key) && !(key === 'online' && value));
  const parameters = shown.map(([key, value]) => `${plain(key)} ${formatValue(value)}`);
  const time = new Date(Number(packet.time));
  // A recording, or a device that was offline: the packet is older than its arrival.
  const old = Math.abs(now.getTime() - time.getTime()) > OLD_MS;
  return [...parameters, ...(old ? [`(${day(time)} ${clock(time)})`] : [])].join('  ');
}

function formatUpdate(data: Json): string {
  const before = (data.before ?? {}) as Json;
  const after = (data.after ?? {}) as Json;
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return fields.map((key) => `${plain(key)}: ${formatValue(before[key])} → ${formatValue(after[key])}`).join(', ');
}

function formatCommand(data: Json): string {
  const { command, params, status, result } = (data.command ?? {}) as Json;
  const answer = result === undefined ? '' : ` ${formatValue(result)}`;
  return `${plain(String(command))} ${formatValue(params)}: ${plain(String(status))}${answer}`;
}

function formatAlarm(event: string, data: Json): string {
  const { name, severity, values } = (data.alarm ?? {}) as Json;
  return `${event}: ${plain(String(name))} (${plain(String(severity))}) ${formatValue(values)}`;
}

function formatValue(value: unknown): string {
  return value === undefined ? 'none' : plain(JSON.stringify(value));
}

// Control characters from devices must not reach the terminal.
function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function clock(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function day(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

/** The summary at the end: the number of events per object. */
export function formatCounts(counts: ReadonlyMap<string, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const lines = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => `  ${plain(name)}: ${count}`);
  return [`${total} events`, ...lines].join('\n');
}
