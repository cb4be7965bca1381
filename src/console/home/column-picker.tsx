/** Chooses what a table or a tile shows of objects, in the order in which it is chosen. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { Dialog } from '../parts/dialog.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { useShow } from './address.js';
import { formatColumns, MOST_COLUMNS, type Parameter, parametersOfFleet, parseColumns, toColumn } from './columns.js';
import { columns } from './view.js';

const MOST_SHOWN = 100;

interface Choice extends Pick<Parameter, 'name' | 'label'> {
  readonly column: string;
}

interface ColumnPickerProps {
  /** Those that are no parameters. */
  readonly own: readonly Choice[];
  /** What is shown as long as nothing is chosen. */
  readonly usual: readonly string[];
  readonly onClose: () => void;
}

export function ColumnPicker({ own, usual, onClose }: ColumnPickerProps) {
  const show = useShow();
  const search = useSignal('');
  const all = useMemo(
    () => [...own, ...parametersOfFleet().map((one) => ({ ...one, column: toColumn(one.name) }))],
    [],
  );
  const chosen = parseColumns(columns.value) ?? usual;
  const wanted = fold(search.value.trim());
  const found = all.filter(({ name, label }) => fold(`${label}\n${name}`).includes(wanted));
  const shown = found.filter(({ column }, index) => index < MOST_SHOWN || chosen.includes(column));
  const toggle = (column: string): void => {
    const next = chosen.includes(column) ? chosen.filter((one) => one !== column) : [...chosen, column];
    show({ columns: next.length === 0 ? null : formatColumns(next) });
  };
  return (
    <Dialog title={t('columns.choose')} onClose={onClose} size="medium">
      <div class="search">
        <input
          type="search"
          aria-label={t('columns.find')}
          placeholder={t('columns.find')}
          value={search.value}
          onInput={(event) => write(search)(event.currentTarget.value)}
        />
      </div>
      {all.length === 0 && <p class="quiet">{t('columns.none')}</p>}
      <ul class="column-choices">
        {shown.map(({ column, name, label }) => (
          <li key={column}>
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.includes(column)}
                disabled={!chosen.includes(column) && chosen.length >= MOST_COLUMNS}
                onChange={() => toggle(column)}
              />
              <span>
                {label} {label !== name && <span class="quiet">{name}</span>}
              </span>
            </label>
          </li>
        ))}
      </ul>
      {found.length > shown.length && (
        <p class="hint">{t('columns.more', { count: formatNumber(found.length - shown.length) })}</p>
      )}
      {columns.value !== null && (
        <p>
          <button type="button" class="button small" onClick={() => show({ columns: null })}>
            {t('columns.usual')}
          </button>
        </p>
      )}
    </Dialog>
  );
}
