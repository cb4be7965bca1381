/** What an object says now: its values, a chart that goes on, its last packets. */

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { ToneMark } from '../home/tone.js';
import { argumentOf, type Model, modelOf, oldTimeOf, type Shown, toShown } from '../home/values.js';
import { Problem } from '../parts/form.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { Values } from '../parts/values.js';
import { list } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import {
  type FleetObject,
  objects,
  onPacket,
  type Packet,
  parametersOf,
  stateRevision,
  watchRemovals,
} from '../state/fleet.js';
import { interruptions, isLost } from '../state/live.js';
import { toAddress, useLocation } from '../state/location.js';
import { isPlaceField, placeIn, placeOf, rememberPlace, setPlace } from '../state/places.js';
import { formatMoment, t } from '../text/language.js';
import { Chart } from './chart.js';
import type { ChartData } from './chart-data.js';
import { addPacket, type LastValues } from './last-values.js';
import { isWorthChart, numberAt, numberPathsOf } from './numbers.js';
import { ParameterChips } from './parameter-chips.js';
import { findPresence } from './presence.js';

const LAST_PACKETS = 600;
/** Of those that came before their events did. */
const MISSED_PACKETS = 50;
const SHOWN_PACKETS = 15;

export function LiveTab({ object: { _id } }: { object: FleetObject }) {
  stateRevision.value;
  const object = objects.get(_id);
  const { packets, last, error } = useLastPackets(_id);
  if (object === undefined) return null;
  if (object.state === undefined) {
    return (
      <Empty icon="activity" title={t('card.noPacket')}>
        <a class="button primary" href={toAddress(`/objects/${_id}/settings`)}>
          {t('object.connect')}
        </a>
      </Empty>
    );
  }
  addPacket(last, object.state);
  const found = placeIn(last);
  if (found !== null) setPlace(_id, found);
  const place = placeOf(object);
  const model = modelOf(_id, object.model);
  const values = toShownValues(last, object.state.time, model);
  return (
    <>
      <Values values={values} position={place} positionMs={oldTimeOf(place?.timeMs, object.state.time)} isLarge />
      {packets !== null && <OnlineSince packets={packets} />}
      <Problem error={error} />
      {packets === null ? <Skeleton rows={4} /> : <LiveChart packets={packets} values={values} model={model} />}
      {packets !== null && <LastPackets packets={packets} values={values} model={model} />}
    </>
  );
}

function OnlineSince({ packets }: { packets: readonly Packet[] }) {
  const presence = findPresence(packets, packets.length < LAST_PACKETS);
  if (presence === null) return null;
  const { isOnline, sinceMs, isAtLeast } = presence;
  const since = t(isAtLeast ? 'live.sinceEarlier' : 'live.since', { moment: formatMoment(sinceMs, serverNowMs()) });
  const online = isLost.value ? 'state.unknown' : 'state.online';
  return (
    <p class="quiet since">
      {t(isOnline ? online : 'state.offline')} {since}
    </p>
  );
}

/** Every value but the place, with its time where it is older than the newest packet. */
function toShownValues(last: LastValues, newestMs: number, model: Model | undefined): Shown[] {
  return [...last]
    .filter(([name, { value }]) => !isPlaceField(name, value))
    .map(([name, { value, timeMs }]) => ({ ...toShown(name, value, model), timeMs: oldTimeOf(timeMs, newestMs) }));
}

interface Recent {
  /** In the order of their times; null until they are loaded. */
  readonly packets: readonly Packet[] | null;
  readonly last: LastValues;
  readonly error: unknown;
}

/** The newest packets, with those that arrive, and what they say. */
function useLastPackets(id: string): Recent {
  const packets = useSignal<readonly Packet[] | null>(null);
  const last = useMemo<LastValues>(() => new Map(), [id]);
  const arrived = useMemo<Packet[]>(() => [], [id]);
  const load = async (limit: number): Promise<void> => {
    const before = packets.peek();
    const isCurrent = watchRemovals([id]);
    const found = await list<Packet>(`/objects/${id}/packets`, { sortBy: '-time', limit });
    // Whoever shows what is left reads it anew.
    if (!isCurrent(id)) return;
    const oldest = found.at(-1)?._id;
    // There may be more between.
    if (limit < LAST_PACKETS && found.length === limit && !has(before, oldest)) return load(LAST_PACKETS);
    const known = new Map((packets.peek() ?? arrived).map((packet) => [packet._id, packet]));
    for (const packet of found.reverse()) {
      known.set(packet._id, packet);
      addPacket(last, packet);
      rememberPlace(id, packet);
    }
    packets.value = inOrder([...known.values()]).slice(-LAST_PACKETS);
  };
  const { error } = useFetched(
    () => load(packets.peek() === null ? LAST_PACKETS : MISSED_PACKETS),
    [id, interruptions.value],
  );
  useEffect(
    () =>
      onPacket((packet) => {
        if (packet._oid !== id) return;
        addPacket(last, packet);
        const present = packets.peek();
        // It was stored when they were loaded, and its event came afterwards.
        if (has(present, packet._id)) return;
        if (present !== null) packets.value = inOrder([...present, packet]).slice(-LAST_PACKETS);
        else if (arrived.length < LAST_PACKETS) arrived.push(packet);
      }),
    [id],
  );
  return { packets: packets.value, last, error: error.value };
}

const has = (packets: readonly Packet[] | null, id: string | undefined): boolean =>
  packets?.some(({ _id }) => _id === id) ?? false;

/** Packets may come late. */
const inOrder = (packets: readonly Packet[]): Packet[] => [...packets].sort((a, b) => a.time - b.time);

function toChartData(packets: readonly Packet[], name: string): ChartData {
  const shown = packets.filter((packet) => numberAt(packet, name) !== null);
  return { times: shown.map(({ time }) => time / 1_000), values: shown.map((packet) => numberAt(packet, name)) };
}

/** A number below its parameter, that is not where the object is. */
const isNested = (path: string): boolean => path.includes('.') && isWorthChart(path);

interface LiveChartProps {
  readonly packets: readonly Packet[];
  readonly values: readonly Shown[];
  readonly model: Model | undefined;
}

function LiveChart({ packets, values, model }: LiveChartProps) {
  const own = values.filter(({ value }) => typeof value === 'number');
  const nested = useMemo(() => numberPathsOf(packets.flatMap(parametersOf)).filter(isNested), [packets]);
  const numbers = [...own, ...nested.map((path) => toShown(path, 0, model))];
  const { query, path, route } = useLocation();
  const readout = useSignal('');
  const shown = numbers.find(({ name }) => name === query.chart) ?? numbers[0];
  if (shown === undefined) return null;
  return (
    <Section
      title={shown.label}
      action={
        <ParameterChips
          parameters={numbers}
          chosen={[shown.name]}
          onToggle={(name) => route(`${path}?${new URLSearchParams({ chart: name })}`, true)}
        />
      }
    >
      <p class="readout">{readout}</p>
      <Chart
        {...shown}
        data={toChartData(packets, shown.name)}
        readout={readout}
        heightPx={220}
        ranges={argumentOf(shown.name, model)?.thresholds}
      />
    </Section>
  );
}

const Cell = (shown: Shown) => (
  <>
    {shown.text} <ToneMark {...shown} />
  </>
);

function LastPackets({ packets, values, model }: LiveChartProps) {
  const columns = values.slice(0, 6);
  return (
    <Section title={t('live.packets')}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard */}
      <section class="table" tabIndex={0} aria-label={t('live.packets')}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t('live.time')}</th>
              {columns.map(({ name, label, unit }) => (
                <th key={name} scope="col">
                  {label} <small>{unit}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {packets
              .slice(-SHOWN_PACKETS)
              .reverse()
              .map((packet) => (
                <tr key={packet._id}>
                  <td>{formatMoment(packet.time, serverNowMs())}</td>
                  {parametersOf(packet).length === 0 && columns.length > 0 ? (
                    <td class="quiet" colSpan={columns.length}>
                      {t(packet.online ? 'state.online' : 'state.offline')}
                    </td>
                  ) : (
                    columns.map(({ name }) => (
                      <td key={name}>
                        {packet[name] !== undefined && <Cell {...toShown(name, packet[name], model)} />}
                      </td>
                    ))
                  )}
                </tr>
              ))}
          </tbody>
        </table>
      </section>
    </Section>
  );
}
