/** In words what charts mark: the thresholds of a chart, and the alarms of the interval. */
import { SeverityMark } from '../alarms/severity.js';
import { type Alarm, isOpen } from '../state/alarms.js';
import { nowMs, serverNowMs } from '../state/clock.js';
import { toAddress } from '../state/location.js';
import { may } from '../state/session.js';
import { formatMoment, formatNumber, t } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import type { Threshold } from './thresholds.js';

const MOST_SHOWN = 20;

export function Thresholds({ thresholds, unit }: { thresholds: readonly Threshold[]; unit: string }) {
  return (
    <ul class="chart-marks" aria-label={t('marks.thresholds')}>
      {thresholds.map(({ ruleId, name, severity, sign, value }) => (
        <li key={`${ruleId}${sign}`}>
          <SeverityMark severity={severity} size={14} />
          <a href={toAddress(`/rules/${ruleId}`)}>{name}</a>
          <span class="quiet">
            {sign} {formatNumber(value)} {unit}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The newest ones first. */
export function AlarmsOfInterval({ objectId, alarms }: { objectId: string; alarms: readonly Alarm[] }) {
  const shown = alarms.slice(-MOST_SHOWN).reverse();
  return (
    <section class="interval-alarms">
      <h3>{t('marks.alarms', { count: formatNumber(alarms.length) })}</h3>
      <ul class="chart-marks">
        {shown.map((alarm) => (
          <li key={alarm._id}>
            <SeverityMark severity={alarm.severity} size={14} isQuiet={!isOpen(alarm)} />
            <a href={toAddress(`/alarms/${alarm._id}`)}>{alarm.name}</a>
            <span class="quiet">
              {formatMoment(alarm.raised, serverNowMs())} ·{' '}
              {t(isOpen(alarm) ? 'marks.open' : 'marks.over', {
                span: formatSpan((alarm.cleared ?? nowMs.value) - alarm.raised),
              })}
            </span>
          </li>
        ))}
      </ul>
      {shown.length < alarms.length && may('GET', '/alarms') && (
        <a class="button small" href={toAddress(`/alarms?show=all&object=${objectId}`)}>
          {t('marks.all')}
        </a>
      )}
    </section>
  );
}
