/** The route of an object on a map, and its replay. */
import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { NoMap, useMap } from '../parts/map-view.js';
import { isDark } from '../state/theme.js';
import { write } from '../state/write.js';
import { formatDateTime, t } from '../text/language.js';
import { pointAt, type WholeRoute } from './track.js';

const SPEEDS = [10, 60, 300] as const;

/** What a replay shows; whoever has it may start and stop the replay. */
export interface ReplayState {
  /** The moment; null for the last one, before somebody chooses another. */
  readonly momentMs: Signal<number | null>;
  readonly isPlaying: Signal<boolean>;
}

interface ReplayProps extends ReplayState {
  readonly route: WholeRoute;
  /** The beginning of the next trip for a moment between two; null if there is nothing to skip. */
  readonly skip: ((timeMs: number) => number) | null;
  /** Further buttons. */
  readonly children: ComponentChildren;
}

export function Replay({ route, momentMs, isPlaying, skip, children }: ReplayProps) {
  const { points: track } = route;
  const first = track[0]?.timeMs ?? 0;
  const last = track.at(-1)?.timeMs ?? 0;
  const timeMs = momentMs.value ?? last;
  const speed = useSignal(60);
  const isFollowed = useSignal(true);
  const isSkipping = useSignal(true);
  const { element, state } = useTrackMap(route, timeMs, isFollowed.value);
  usePlay(isPlaying.value, (elapsedMs) => {
    const passedMs = (momentMs.peek() ?? first) + elapsedMs * speed.peek();
    const next = Math.min(last, isSkipping.peek() && skip ? skip(passedMs) : passedMs);
    momentMs.value = next;
    if (next >= last) isPlaying.value = false;
  });
  // On a phone, what started it may be far below.
  useEffect(() => {
    if (isPlaying.value) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isPlaying.value]);
  const toggle = (): void => {
    if (!isPlaying.value && timeMs >= last) momentMs.value = first;
    isPlaying.value = !isPlaying.value;
  };
  return (
    <div>
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
          value={timeMs}
          aria-label={t('replay.moment')}
          aria-valuetext={formatDateTime(timeMs)}
          onInput={(event) => write(momentMs)(Number(event.currentTarget.value))}
        />
        <time>{formatDateTime(timeMs)}</time>
        <ReplayOptions speed={speed} isFollowed={isFollowed} isSkipping={skip === null ? null : isSkipping} />
        {children}
      </div>
    </div>
  );
}

interface ReplayOptionsProps {
  readonly speed: Signal<number>;
  readonly isFollowed: Signal<boolean>;
  /** Null if there is nothing to skip. */
  readonly isSkipping: Signal<boolean> | null;
}

function ReplayOptions({ speed, isFollowed, isSkipping }: ReplayOptionsProps) {
  return (
    <>
      <fieldset class="segments" aria-label={t('replay.speed')}>
        {SPEEDS.map((one) => (
          <button key={one} type="button" aria-pressed={speed.value === one} onClick={() => write(speed)(one)}>
            {one}×
          </button>
        ))}
      </fieldset>
      <Check text={t('replay.follow')} value={isFollowed} />
      {isSkipping !== null && <Check text={t('replay.skipStops')} value={isSkipping} />}
    </>
  );
}

const Check = ({ text, value }: { text: string; value: Signal<boolean> }) => (
  <label class="check">
    <input type="checkbox" checked={value.value} onChange={(event) => write(value)(event.currentTarget.checked)} />
    {text}
  </label>
);

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
