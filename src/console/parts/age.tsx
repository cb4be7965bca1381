/** How long ago something was; the exact time is in its title. */
import { nowMs } from '../state/clock.js';
import { formatAge, formatDateTime } from '../text/language.js';

export function Age({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatDateTime(ms)}>
      {formatAge(ms, nowMs.value)}
    </time>
  );
}
