/** How long ago something was; under the pointer, the exact time. */
import { nowMs } from '../state/clock.js';
import { formatAge, formatDateTime, formatMoment, t } from '../text/language.js';

export function Age({ ms }: { ms: number }) {
  return (
    <time
      dateTime={new Date(ms).toISOString()}
      // Not before: a browser takes long to write the first date in the form of a language.
      onPointerMove={({ currentTarget }) => {
        currentTarget.title = formatDateTime(ms);
      }}
    >
      {formatAge(ms, nowMs.value)}
    </time>
  );
}

/** Until when what is shown was current. */
export const SeenUntil = ({ ms }: { ms: number }) => (
  <>
    {t('offline.until', { moment: formatMoment(ms, nowMs.value) })} (<Age ms={ms} />)
  </>
);
