/** The table of a report, with totals; sorted by the column that is chosen. */
import { useSignal } from '@preact/signals';
import type { ReportName } from '../../core/report-kinds.js';
import { toAddress } from '../state/location.js';
import { formatNumber, t, tn } from '../text/language.js';
import { type Column, columnsOf, type ReportAnswer } from './columns.js';
import { type Cell, type Row, sortRows, sumsByValue } from './order.js';

const SHOWN_AT_ONCE = 200;

interface ReportTableProps {
  readonly kind: ReportName;
  readonly answer: ReportAnswer;
  /** Into what the interval is divided. */
  readonly every: string | undefined;
  readonly sort: string | undefined;
  readonly onSort: (sort: string) => void;
}

/** More values than this are not added up. */
const MOST_VALUES = 10;

export function ReportTable({ kind, answer: { rows, totals }, every, sort, onSort }: ReportTableProps) {
  const most = useSignal(SHOWN_AT_ONCE);
  const hasIds = rows.some(({ id, name }) => id !== name);
  const columns = columnsOf(kind, every, hasIds);
  const shown = sortRows(rows, sort).slice(0, most.value);
  if (rows.length === 0) return <p class="quiet">{t('reports.none')}</p>;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached with the keyboard */}
      <section class="table" tabIndex={0} aria-label={t(`reports.${kind}.title`)}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <Title key={column.name} column={column} sort={sort} onSort={onSort} />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              // Rows have no other name: an object may have equal ones.
              <Cells key={index} row={row} columns={columns} />
            ))}
          </tbody>
          <tfoot>
            {totalsOf(kind, { rows, totals }).map((total, row) => (
              <tr key={row}>
                {columns.map(({ name, isNumber, show }, index) => (
                  <td key={name} class={isNumber ? 'number' : undefined}>
                    {index === 0 ? row === 0 && countText(kind, totals) : name in total && show(total[name] ?? null)}
                  </td>
                ))}
              </tr>
            ))}
          </tfoot>
        </table>
      </section>
      {rows.length > shown.length && (
        <button
          type="button"
          class="button small"
          onClick={() => {
            most.value += SHOWN_AT_ONCE;
          }}
        >
          {t('reports.more', { count: formatNumber(Math.min(SHOWN_AT_ONCE, rows.length - shown.length)) })}
        </button>
      )}
      {totals.rows > rows.length && (
        <p class="quiet">
          {t('reports.limited', { count: formatNumber(rows.length), all: formatNumber(totals.rows) })}
        </p>
      )}
    </>
  );
}

type Totals = ReportAnswer['totals'];

/** `Total: 3 objects, 7 trips`. */
const countText = (kind: ReportName, { objects, rows }: Totals): string =>
  t('reports.total', {
    objects: tn('list.count', objects),
    rows: tn(kind === 'trips' || kind === 'stops' ? `reports.count.${kind}` : 'reports.count.rows', rows),
  });

/** One row; of a parameter one for each value, because the sum of all values says nothing. */
function totalsOf(
  kind: ReportName,
  { rows, totals }: Pick<ReportAnswer, 'rows' | 'totals'>,
): readonly Readonly<Record<string, Cell>>[] {
  if (kind !== 'utilization') return [totals];
  const sums = totals.rows > rows.length ? [] : sumsByValue(rows);
  return sums.length === 0 || sums.length > MOST_VALUES ? [{}] : sums.map((sum) => ({ ...sum }));
}

function Cells({ row, columns }: { row: Row; columns: readonly Column[] }) {
  const { from, to } = row;
  const interval = typeof from === 'number' && typeof to === 'number' ? `?from=${from}&to=${to}` : '';
  return (
    <tr>
      {columns.map(({ name, isNumber, isLong, isPlace, show }) => (
        <td key={name} class={isNumber ? 'number' : isLong ? 'long' : undefined}>
          {name === 'name' && <a href={toAddress(`/objects/${row.object}/history${interval}`)}>{row.name}</a>}
          {isPlace && row[name] && <a href={toAddress(mapPathOf(row[name]))}>{show(row[name])}</a>}
          {name !== 'name' && !isPlace && show(row[name] ?? null)}
        </td>
      ))}
    </tr>
  );
}

/** The map around a place. */
function mapPathOf(cell: Cell): string {
  const [lon = 0, lat = 0] = cell as readonly number[];
  return `/?at=${lat.toFixed(5)},${lon.toFixed(5)},15`;
}

/** Numbers begin with the greatest. */
function Title({ column, sort, onSort }: { column: Column } & Pick<ReportTableProps, 'sort' | 'onSort'>) {
  const { name, title, isNumber } = column;
  const isUp = sort === name;
  const isDown = sort === `-${name}`;
  const next = isUp ? `-${name}` : isDown || !isNumber ? name : `-${name}`;
  return (
    <th
      scope="col"
      class={isNumber ? 'number' : undefined}
      aria-sort={isUp ? 'ascending' : isDown ? 'descending' : undefined}
    >
      <button type="button" class="sort" onClick={() => onSort(next)}>
        {t(title)}
        <span aria-hidden="true">{isUp ? ' ↑' : isDown ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}
