/** The boxes of a role: a row for each store and for what it has besides, a column for each method. */
import { useSignal } from '@preact/signals';
import type { TargetedEvent } from 'preact';
import { useId } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { t } from '../text/language.js';
import { type Box, type BoxState, COLUMNS, type Column, type Grid, permittedBy, type Row, stateOf } from './grid.js';
import { nameOfColumn, nounOf, phraseOf } from './words.js';

interface TableProps {
  readonly grid: Grid;
  readonly lines: readonly string[];
  /** Whether the user may change any of it. */
  readonly mayChange: boolean;
  /** Whether the user may add the line. */
  readonly mayPermit: (line: string) => boolean;
  readonly onToggle: (box: Box) => void;
  /** Says why a box cannot be changed, when it was pressed; nothing when another one was changed. */
  readonly onNote: (text: string) => void;
}

type StateOf = (box: Box) => BoxState;

/** Of objects, because commands and packets are among it. */
const FIRST_OPEN = '/objects';

export function PermissionTable({ grid, lines, ...handlers }: TableProps) {
  const permitted = permittedBy(lines, grid.requests);
  const stateIn: StateOf = (box) => stateOf(box, lines, permitted);
  const isChosen = ({ boxes }: Row): boolean => Object.values(boxes).some((box) => stateIn(box).kind === 'on');
  // What is chosen when the form is opened is seen.
  const open = useSignal<ReadonlySet<string>>(
    new Set([FIRST_OPEN, ...grid.rows.filter(({ below }) => below.some(isChosen)).map(({ path }) => path)]),
  );
  const cells = { stateIn, ...handlers };
  const fold = (path: string): void => {
    const next = new Set(open.value);
    if (!next.delete(path)) next.add(path);
    open.value = next;
  };
  return (
    <table class="permission-table" aria-label={t('roles.table')} onKeyDown={moveFocus}>
      <thead>
        <tr>
          <th scope="col">{t('roles.part')}</th>
          {COLUMNS.map((column) => (
            <th key={column} scope="col">
              <span>{t(`roles.column.${nameOfColumn(column)}`)}</span>
            </th>
          ))}
        </tr>
      </thead>
      {grid.rows.map((row) => (
        <tbody key={row.path}>
          <Line
            row={row}
            {...cells}
            fold={row.below.length > 0 ? { isOpen: open.value.has(row.path), toggle: () => fold(row.path) } : null}
          />
          {open.value.has(row.path) &&
            row.below.map((one) => <Line key={one.path} row={one} {...cells} fold={null} isBelow />)}
        </tbody>
      ))}
    </table>
  );
}

/** The arrows lead to the next box of the row or of the column. */
const STEPS: Readonly<Record<string, readonly [rows: number, columns: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

function moveFocus(event: TargetedEvent<HTMLTableElement, KeyboardEvent>): void {
  const [down, right] = STEPS[event.key] ?? [];
  const cell = event.target instanceof HTMLInputElement ? event.target.closest('td') : null;
  if (down === undefined || right === undefined || cell === null) return;
  event.preventDefault();
  const { rows } = event.currentTarget;
  let row = rows[(cell.parentElement as HTMLTableRowElement).rowIndex + down];
  let column = cell.cellIndex + right;
  const boxHere = () => row?.cells[column]?.querySelector('input');
  while (row !== undefined && column > 0 && column < row.cells.length && !boxHere()) {
    row = rows[row.rowIndex + down];
    column += right;
  }
  boxHere()?.focus();
}

interface CellsProps extends Omit<TableProps, 'grid' | 'lines'> {
  readonly stateIn: StateOf;
}

interface LineProps extends CellsProps {
  readonly row: Row;
  /** null if nothing is below. */
  readonly fold: { readonly isOpen: boolean; readonly toggle: () => void } | null;
  readonly isBelow?: boolean;
}

function Line({ row, fold, isBelow = false, ...cells }: LineProps) {
  const noun = nounOf(row);
  return (
    <tr class={isBelow ? 'below' : ''}>
      <th scope="row">
        {fold === null ? (
          <span>{noun}</span>
        ) : (
          <button
            type="button"
            class="link-button"
            aria-expanded={fold.isOpen}
            aria-label={t('roles.parts', { what: noun })}
            onClick={fold.toggle}
          >
            <span>{noun}</span>
            <Icon name="right" size={14} />
          </button>
        )}
      </th>
      {COLUMNS.map((column) => {
        const box = row.boxes[column];
        return <td key={column}>{box && <BoxCell row={row} column={column} box={box} {...cells} />}</td>;
      })}
    </tr>
  );
}

interface BoxCellProps extends CellsProps {
  readonly row: Row;
  readonly column: Column;
  readonly box: Box;
}

/** A box that cannot be changed keeps the focus, and says why when it is pressed. */
function BoxCell({ row, column, box, ...cells }: BoxCellProps) {
  const { stateIn, onToggle, onNote } = cells;
  const reasonId = useId();
  const state = stateIn(box);
  const phrase = phraseOf(row, column);
  const reason = reasonOf(box, state, cells);
  return (
    <label title={reason ?? box.line}>
      <input
        type="checkbox"
        aria-label={phrase}
        aria-disabled={reason !== null}
        aria-describedby={reason === null ? undefined : reasonId}
        checked={state.kind === 'on' || state.kind === 'covered'}
        indeterminate={state.kind === 'partly'}
        onClick={(event) => {
          onNote(reason === null ? '' : `${phrase}: ${reason}`);
          if (reason !== null) event.preventDefault();
        }}
        onChange={() => {
          if (reason === null) onToggle(box);
        }}
      />
      {reason !== null && (
        <span id={reasonId} class="visually-hidden">
          {reason}
        </span>
      )}
    </label>
  );
}

/** Why a box cannot be changed; null if it can be. What nobody may add can still be taken away. */
function reasonOf({ line }: Box, state: BoxState, { mayChange, mayPermit }: CellsProps): string | null {
  if (state.kind === 'covered') return t('roles.covered', { line: state.by });
  if (!mayChange) return t('roles.tooWide');
  return state.kind === 'on' || mayPermit(line) ? null : t('roles.notYours');
}
