/** What the rows of a file would do, and which of them the server has refused. */
import { useSignal } from '@preact/signals';
import { formatNumber, t, tn } from '../text/language.js';
import type { PlannedRow } from './plan.js';
import type { WriteOutcome } from './send.js';

const KINDS = ['create', 'change', 'same', 'refused'] as const;
const MOST_SHOWN = 200;

export function Preview({ plan }: { plan: readonly PlannedRow[] }) {
  const shown = useSignal<PlannedRow['kind'] | null>(null);
  const rows = plan.filter(({ kind }) => shown.value === null || kind === shown.value);
  const countOf = (wanted: PlannedRow['kind']): number => plan.filter(({ kind }) => kind === wanted).length;
  return (
    <>
      <fieldset class="chips" aria-label={t('import.preview')}>
        {KINDS.map((kind) => (
          <button
            key={kind}
            type="button"
            class="chip"
            aria-pressed={shown.value === kind}
            onClick={() => {
              shown.value = shown.value === kind ? null : kind;
            }}
          >
            {t(`import.${kind}`)} {formatNumber(countOf(kind))}
          </button>
        ))}
      </fieldset>
      {rows.length > 0 && <Rows rows={rows.slice(0, MOST_SHOWN)} />}
      {rows.length > MOST_SHOWN && (
        <p class="hint">{t('import.more', { count: formatNumber(rows.length - MOST_SHOWN) })}</p>
      )}
    </>
  );
}

function Rows({ rows }: { rows: readonly PlannedRow[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
    <section class="table" tabIndex={0} aria-label={t('import.preview')}>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">{t('import.row')}</th>
            <th scope="col">id</th>
            <th scope="col">{t('entity.name')}</th>
            <th scope="col">{t('import.preview')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.row}>
              <td data-title={t('import.row')}>{formatNumber(row.row)}</td>
              <td data-title="id">{row.id}</td>
              <td data-title={t('entity.name')}>{row.name}</td>
              <td data-title={t('import.preview')} class={row.fault ? 'note error' : undefined}>
                {t(`import.${row.kind}`)}
                {row.fault && `: ${t(`import.${row.fault.name}`, { value: row.fault.value })}`}
                {row.fields.length > 0 && `: ${row.fields.join(', ')}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Refusals({ outcome: { refused } }: { outcome: WriteOutcome }) {
  if (refused.length === 0) return null;
  return (
    <div role="alert">
      <p class="hint warn">{tn('import.refusals', refused.length)}</p>
      <ul class="reasons">
        {refused.map(({ row: { row, id }, reason }) => (
          <li key={row}>{t('import.refusal', { row: formatNumber(row), id, reason })}</li>
        ))}
      </ul>
    </div>
  );
}
