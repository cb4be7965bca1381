/** That the clock of an object's device is wrong, and since when; under the pointer, in how many packets. */
import { serverNowMs } from '../state/clock.js';
import type { FleetObject } from '../state/fleet.js';
import { formatDateTime, formatMoment, t } from '../text/language.js';

export function WrongClock({ object: { wrongClock } }: { object: FleetObject }) {
  if (!wrongClock) return null;
  const { since, packets, deviceTime } = wrongClock;
  const title = t('object.wrongClockPackets', { count: packets, moment: formatDateTime(deviceTime) });
  return (
    <span class="tag" title={title}>
      {t('object.wrongClock', { moment: formatMoment(since, serverNowMs()) })}
    </span>
  );
}
