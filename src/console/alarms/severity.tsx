/** The severity of an alarm as a shape with its own color: an octagon, a triangle or a disc. */
import type { Severity } from '../state/alarms.js';
import { t } from '../text/language.js';

const SHAPES: Readonly<Record<Severity, string>> = {
  critical: 'M7.6 2h8.8L22 7.6v8.8L16.4 22H7.6L2 16.4V7.6Z',
  warning: 'M10.3 3.2a2 2 0 0 1 3.4 0l8 14.3A2 2 0 0 1 20 20.5H4a2 2 0 0 1-1.7-3Z',
  info: 'M12 2a10 10 0 1 0 0 20 10 10 0 1 0 0-20Z',
};
const SIGNS: Readonly<Record<Severity, string>> = {
  critical: 'M12 7v6M12 16.5h.01',
  warning: 'M12 9v5M12 17h.01',
  info: 'M12 11v6M12 7.5h.01',
};

interface MarkProps {
  readonly severity: Severity;
  readonly size?: number;
  /** An outline: the alarm is over, or somebody takes care of it. */
  readonly isQuiet?: boolean;
}

/** With its name for those who do not see it. */
export function SeverityMark({ severity, size = 20, isQuiet = false }: MarkProps) {
  return (
    <svg
      class={`severity ${severity}${isQuiet ? ' quiet-mark' : ''}`}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      role="img"
      aria-label={t(`severity.${severity}`)}
    >
      <path class="shape" d={SHAPES[severity]} />
      <path class="sign" d={SIGNS[severity]} />
    </svg>
  );
}
