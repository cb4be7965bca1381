/** The table of a report, with totals; sorted by the column that is chosen. */
import { useSignal } from '@preact/signals';
import type { ReportName } from '../../core/report-kinds.js';
import { toAddress } from '../state/location.js';
import { formatNumber, t } from '../text/language.js';
import { type Column, columnsOf, type ReportAnswer } from './columns.js';
import { type Row, sortRows } from './order.js';

const SHOWN_AT_ONCE = 200;

interface ReportTableProps {
  readonly kind: ReportName;
  readonly answer: ReportAnswer;
  readonly isDivided: boolean;
  readonly sort: string | undefined;
  readonly onSort: (sort: string) => void;
}

export function ReportTable({ kind, answer: { rows, totals }, isDivided, sort, onSort }: ReportTableProps) {
  const most = useSignal(SHOWN_AT_ONCE);
  const columns = columnsOf(kind, isDivided);
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
            <tr>
              {columns.map(({ name, isNumber, show }, index) => (
                <td key={name} class={isNumber ? 'number' : undefined}>
                  {index === 0
                    ? t('reports.total', { objects: formatNumber(totals.objects), rows: formatNumber(totals.rows) })
                    : name in totals && show(totals[name] ?? null)}
                </td>
              ))}
            </tr>
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

function Cells({ row, columns }: { row: Row; columns: readonly Column[] }) {
  const { from, to } = row;
  const interval = typeof from === 'number' && typeof to === 'number' ? `?from=${from}&to=${to}` : '';
  return (
    <tr>
      {columns.map(({ name, isNumber, show }) => (
        <td key={name} class={isNumber ? 'number' : undefined}>
          {name === 'name' ? (
            <a href={toAddress(`/objects/${row.object}/history${interval}`)}>{row.name}</a>
          ) : (
            show(row[name] ?? null)
          )}
        </td>
      ))}
    </tr>
  );
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
