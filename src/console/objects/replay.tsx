/** The route of an object on a map, and its replay. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { NoMap, useMap } from '../parts/map-view.js';
import { Section } from '../parts/tabs.js';
import { isDark } from '../state/theme.js';
import { write } from '../state/write.js';
import { formatDateTime, t } from '../text/language.js';
import { pointAt, type WholeRoute } from './track.js';

const SPEEDS = [10, 60, 300] as const;

interface ReplayProps {
  readonly route: WholeRoute;
  /** Tells the rest of the page which moment is shown. */
  readonly onMoment: (timeMs: number) => void;
}

export function Replay({ route, onMoment }: ReplayProps) {
  const { points: track } = route;
  const first = track[0]?.timeMs ?? 0;
  const last = track.at(-1)?.timeMs ?? 0;
  const timeMs = useSignal(last);
  const speed = useSignal(60);
  const isPlaying = useSignal(false);
  const isFollowed = useSignal(true);
  const { element, state } = useTrackMap(route, timeMs.value, isFollowed.value);
  useEffect(() => {
    timeMs.value = last;
  }, [first, last]);
  usePlay(isPlaying.value, (elapsedMs) => {
    const next = Math.min(last, timeMs.peek() + elapsedMs * speed.peek());
    timeMs.value = next;
    onMoment(next);
    if (next >= last) isPlaying.value = false;
  });
  const seek = (to: number): void => {
    timeMs.value = to;
    onMoment(to);
  };
  const toggle = (): void => {
    if (!isPlaying.value && timeMs.value >= last) seek(first);
    isPlaying.value = !isPlaying.value;
  };
  if (track.length < 2) return null;
  return (
    <Section title={t('history.track')}>
      <div class="track-map">
        <div ref={element} class="map" />
        {state === 'impossible' ? <NoMap /> : <p class="attribution">Natural Earth, GeoNames · MapLibre</p>}
      </div>
      <div class="replay">
        <button type="button" class="button primary" onClick={toggle}>
          <Icon name={isPlaying.value ? 'pause' : 'play'} /> {t(isPlaying.value ? 'replay.pause' : 'replay.play')}
        </button>
        <input
          type="range"
          min={first}
          max={last}
          step={1_000}
          value={timeMs.value}
          aria-label={t('replay.moment')}
          aria-valuetext={formatDateTime(timeMs.value)}
          onInput={(event) => seek(Number(event.currentTarget.value))}
        />
        <time>{formatDateTime(timeMs.value)}</time>
        <ReplayOptions speed={speed} isFollowed={isFollowed} />
      </div>
    </Section>
  );
}

function ReplayOptions({ speed, isFollowed }: { speed: Signal<number>; isFollowed: Signal<boolean> }) {
  return (
    <>
      <fieldset class="segments" aria-label={t('replay.speed')}>
        {SPEEDS.map((one) => (
          <button key={one} type="button" aria-pressed={speed.value === one} onClick={() => write(speed)(one)}>
            {one}×
          </button>
        ))}
      </fieldset>
      <label class="check">
        <input
          type="checkbox"
          checked={isFollowed.value}
          onChange={(event) => write(isFollowed)(event.currentTarget.checked)}
        />
        {t('replay.follow')}
      </label>
    </>
  );
}

function usePlay(isPlaying: boolean, advance: (elapsedMs: number) => void): void {
  const latest = useRef(advance);
  latest.current = advance;
  useEffect(() => {
    if (!isPlaying) return;
    let frame = 0;
    let beforeMs = performance.now();
    const step = (nowMs: number): void => {
      latest.current(nowMs - beforeMs);
      beforeMs = nowMs;
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying]);
}

function useTrackMap({ points: track, lines }: WholeRoute, timeMs: number, isFollowed: boolean) {
  const { element, map, state } = useMap(async () => {
    const { createTrackMap } = await import('../map/track-map.js');
    return (container) =>
      createTrackMap(container, {
        label: t('history.track'),
        isDark: isDark.peek(),
        help: {
          wheel: t('replay.wheel', { key: t('replay.ctrl') }),
          wheelOnMac: t('replay.wheel', { key: '⌘' }),
          finger: t('replay.finger'),
        },
      });
  }, track.length >= 2);
  useEffect(() => map.current?.setTrack(track, lines), [track.length, track[0]?.timeMs, track.at(-1)?.timeMs, state]);
  useEffect(() => {
    const point = pointAt(track, timeMs);
    if (point !== undefined) map.current?.setPlace(point, isFollowed);
  });
  useEffect(() => map.current?.setDark(isDark.value), [isDark.value, state]);
  return { element, state };
}
