/** What an object says now: its values, a chart that goes on, its last packets. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatValue, modelOf, type Shown } from '../home/values.js';
import { Problem } from '../parts/form.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { Values } from '../parts/values.js';
import { call, toQuery } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, objects, onPacket, type Packet, positionOf, stateRevision } from '../state/fleet.js';
import { write } from '../state/write.js';
import { formatMoment, t } from '../text/language.js';
import { Chart } from './chart.js';
import type { ChartData } from './chart-data.js';
import { addPacket, type LastValues, oldTimeOf, toShownValues } from './last-values.js';

const LAST_PACKETS = 600;
const SHOWN_PACKETS = 15;

export function LiveTab({ object: { _id } }: { object: FleetObject }) {
  stateRevision.value;
  const object = objects.get(_id);
  const { packets, last, error } = useLastPackets(_id);
  if (object === undefined) return null;
  if (object.state === undefined) {
    return (
      <Empty icon="activity" title={t('card.noPacket')}>
        <a class="button primary" href={`/objects/${_id}/settings`}>
          {t('object.connect')}
        </a>
      </Empty>
    );
  }
  addPacket(last, object.state);
  const position = positionOf({ ...object.state, lat: last.get('lat')?.value, lon: last.get('lon')?.value } as Packet);
  const values = toShownValues(last, object.state.time, modelOf(_id, object.model));
  return (
    <>
      <Values values={values} position={position} positionMs={oldTimeOf(last, 'lat', object.state.time)} isLarge />
      <Problem error={error} />
      {packets === null ? <Skeleton rows={4} /> : <LiveChart packets={packets} values={values} />}
      {packets !== null && <LastPackets packets={packets} values={values} />}
    </>
  );
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
  const { error } = useFetched(async () => {
    const found = await call<Packet[]>(
      'GET',
      `/objects/${id}/packets${toQuery({ sortBy: '-time', limit: LAST_PACKETS })}`,
    );
    for (const packet of found.reverse()) addPacket(last, packet);
    const known = new Set(found.map(({ _id }) => _id));
    packets.value = inOrder([...found, ...arrived.filter(({ _id }) => !known.has(_id))]);
  }, [id]);
  useEffect(
    () =>
      onPacket((packet) => {
        if (packet._oid !== id) return;
        addPacket(last, packet);
        const present = packets.peek();
        if (present !== null) packets.value = inOrder([...present, packet]).slice(-LAST_PACKETS);
        else if (arrived.length < LAST_PACKETS) arrived.push(packet);
      }),
    [id],
  );
  return { packets: packets.value, last, error: error.value };
}

/** Packets may come late. */
const inOrder = (packets: readonly Packet[]): Packet[] => [...packets].sort((a, b) => a.time - b.time);

export function toChartData(packets: readonly Packet[], name: string): ChartData {
  const shown = packets.filter((packet) => typeof packet[name] === 'number');
  return { times: shown.map(({ time }) => time / 1_000), values: shown.map((packet) => packet[name] as number) };
}

function LiveChart({ packets, values }: { packets: readonly Packet[]; values: readonly Shown[] }) {
  const numbers = values.filter(({ value }) => typeof value === 'number');
  const chosen = useSignal('');
  const shown = numbers.find(({ name }) => name === chosen.value) ?? numbers[0];
  if (shown === undefined) return null;
  return (
    <Section
      title={shown.label}
      action={
        <fieldset class="chips" aria-label={t('live.parameter')}>
          {numbers.map(({ name, label }) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={name === shown.name}
              onClick={() => write(chosen)(name)}
            >
              {label}
            </button>
          ))}
        </fieldset>
      }
    >
      <Chart label={shown.label} unit={shown.unit} data={toChartData(packets, shown.name)} heightPx={220} />
    </Section>
  );
}

function LastPackets({ packets, values }: { packets: readonly Packet[]; values: readonly Shown[] }) {
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
                  <td>{formatMoment(packet.time, Date.now())}</td>
                  {columns.map(({ name }) => (
                    <td key={name}>{packet[name] === undefined ? '' : formatValue(packet[name])}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </section>
    </Section>
  );
}
