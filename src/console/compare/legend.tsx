/** The series of the page as a table: which line is which, what each says at the pointer, and its least, average and greatest value. */
import { explain } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { VigilError } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { toAddress } from '../state/location.js';
import { formatMoment, formatNumber, t } from '../text/language.js';
import type { Statistics } from './buckets.js';
import { colorOf, DASHES } from './lines-plot.js';

export interface LegendRow {
  /** Its place among the series, which has a color. */
  readonly number: number;
  readonly key: string;
  readonly name: string;
  /** Its history. */
  readonly path: string;
  readonly label: string;
  readonly unit: string;
  readonly isLoading: boolean;
  /** Why it cannot be shown. */
  readonly problem: unknown;
  /** Null without any number. */
  readonly statistics: Statistics | null;
  /** At the pointer. */
  readonly value: number | null;
}

interface LegendProps {
  readonly rows: readonly LegendRow[];
  /** When the pointer is; null without one. */
  readonly atMs: number | null;
  readonly onFocus: (number: number | null) => void;
  readonly onRemove: (key: string) => void;
}

export function Legend({ rows, atMs, onFocus, onRemove }: LegendProps) {
  const value = atMs === null ? t('compare.newest') : formatMoment(atMs, serverNowMs());
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached with the keyboard
    <section class="table compare-legend" tabIndex={0} aria-label={t('compare.series')}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t('compare.series')}</th>
            <th scope="col" class="number">
              {value}
            </th>
            {(['min', 'avg', 'max'] as const).map((name) => (
              <th key={name} scope="col" class="number">
                {t(`compare.${name}`)}
              </th>
            ))}
            <th scope="col">
              <span class="visually-hidden">{t('action.remove')}</span>
            </th>
          </tr>
        </thead>
        <tbody onMouseLeave={() => onFocus(null)}>
          {rows.map((row) => (
            <Row key={row.key} row={row} hasPointer={atMs !== null} onFocus={onFocus} onRemove={onRemove} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps extends Pick<LegendProps, 'onFocus' | 'onRemove'> {
  readonly row: LegendRow;
  readonly hasPointer: boolean;
}

function Row({ row, hasPointer, onFocus, onRemove }: RowProps) {
  const { number, key, name, path, label, unit, statistics, value } = row;
  const title = `${name} · ${label}`;
  const shown = [hasPointer ? value : statistics?.last, statistics?.min, statistics?.avg, statistics?.max];
  return (
    <tr onMouseEnter={() => onFocus(number)} onFocusIn={() => onFocus(number)} onFocusOut={() => onFocus(null)}>
      <th scope="row">
        <Swatch number={number} /> <a href={toAddress(path)}>{name}</a> <span>{label}</span>{' '}
        <small class="quiet">{unit}</small>
      </th>
      {statistics === null ? (
        <td colSpan={shown.length} class="quiet">
          {row.isLoading ? '…' : explainProblem(row.problem)}
        </td>
      ) : (
        shown.map((one, index) => (
          <td key={index} class="number">
            {one === null || one === undefined ? '–' : formatNumber(one)}
          </td>
        ))
      )}
      <td>
        <button
          type="button"
          class="icon-button"
          aria-label={t('compare.remove', { series: title })}
          title={t('compare.remove', { series: title })}
          onClick={() => onRemove(key)}
        >
          <Icon name="close" size={16} />
        </button>
      </td>
    </tr>
  );
}

/** The line as the charts draw it, with its dashes. */
export const Swatch = ({ number }: { number: number }) => (
  <svg class="line-swatch" width="26" height="10" viewBox="0 0 26 10" aria-hidden="true">
    <path
      d="M0 5H26"
      stroke={`var(${colorOf(number)})`}
      stroke-width="2.5"
      stroke-dasharray={DASHES[number]?.join(' ')}
    />
  </svg>
);

function explainProblem(problem: unknown): string {
  if (!problem) return t('compare.none');
  const status = problem instanceof VigilError ? problem.status : null;
  if (status === 404) return t('compare.gone');
  return status === 403 ? t('compare.forbidden') : explain(problem);
}
