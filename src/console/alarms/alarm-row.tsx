/** An alarm in the list: how bad it is, what and where, since when, and whether somebody takes care of it. */
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { type Alarm, isOpen, isWaiting } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { objectRevision } from '../state/fleet.js';
import { formatAge, t } from '../text/language.js';
import { nameOfObject } from './alarm-list.js';
import { AlarmPlace } from './alarm-place.js';
import { personOf, summaryOf } from './alarm-values.js';
import { SeverityMark } from './severity.js';

interface RowProps {
  readonly alarm: Alarm;
  readonly isCurrent: boolean;
  readonly isChosen: boolean;
  /** Whether it takes the focus when it becomes the current one. */
  readonly takesFocus: () => boolean;
  readonly onOpen: () => void;
  /** Absent for an alarm that nobody has to acknowledge. */
  readonly onChoose: ((isChosen: boolean) => void) | null;
}

export function AlarmRow({ alarm, isCurrent, isChosen, takesFocus, onOpen, onChoose }: RowProps) {
  const button = useRef<HTMLButtonElement>(null);
  objectRevision.value;
  useEffect(() => {
    if (isCurrent && takesFocus()) button.current?.focus();
  }, [isCurrent]);
  const object = nameOfObject(alarm.object);
  return (
    <li class={`alarm-row ${alarm.severity}${isWaiting(alarm) ? ' waiting-row' : ''}`}>
      <label class="alarm-check">
        <input
          type="checkbox"
          aria-label={t('alarm.choose', { name: alarm.name, object })}
          checked={isChosen}
          disabled={onChoose === null}
          onChange={(event) => onChoose?.(event.currentTarget.checked)}
        />
      </label>
      <button ref={button} type="button" class="alarm-open" aria-pressed={isCurrent} onClick={onOpen}>
        <SeverityMark severity={alarm.severity} isQuiet={!isWaiting(alarm)} />
        <span class="alarm-what">
          <span class="alarm-name">{alarm.name}</span>
          <span class="alarm-where">
            <span class="alarm-object">{object}</span>
            <AlarmPlace position={alarm.position} />
          </span>
        </span>
        <span class="alarm-values">{summaryOf(alarm)}</span>
        <span class="alarm-when">
          <span>{formatAge(alarm.raised, nowMs.value)}</span>
          <State alarm={alarm} />
        </span>
      </button>
    </li>
  );
}

function State({ alarm }: { alarm: Alarm }) {
  if (!isOpen(alarm)) return <span class="alarm-state">{t('alarm.cleared')}</span>;
  if (isWaiting(alarm)) return <span class="alarm-state waits">{t('alarm.waits')}</span>;
  return (
    <span class="alarm-state">
      <Icon name="check" size={14} /> {personOf(alarm.acknowledged?.user)}
    </span>
  );
}
