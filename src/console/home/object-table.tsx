/** All objects as a table with chosen columns, live. Only the rows in view exist. */
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { useVirtualRows } from '../parts/virtual-list.js';
import { worstByObject } from '../state/alarms.js';
import { loading, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { useShow } from './address.js';
import { mayChoose } from './chosen.js';
import { ColumnPicker } from './column-picker.js';
import { parametersOfFleet, parseColumns } from './columns.js';
import { Mark } from './mark.js';
import { countedMs, selectedId, visible } from './selection.js';
import { ChoiceBar, ChooseAll, ChooseOne, onChoiceKey } from './table-choice.js';
import { type Column, columnsOf, ownTitles, sortObjects, usualColumns } from './table-columns.js';
import { toCsv } from './table-csv.js';
import { ToneMark } from './tone.js';
import { by, columns } from './view.js';

const BULK_TEXTS: TextLoader = {
  en: () => import('../text/english-bulk.js'),
  de: () => import('../text/german-bulk.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(BULK_TEXTS);

/** On touch screens as large as a finger. */
const ROW_PX = 44;

/** The columns, and the rows in their order. Both follow what objects send, once a second. */
function useRows() {
  // They do not change with every packet.
  const parameters = useComputed(() => {
    loading.value;
    objectRevision.value;
    countedMs.value;
    return parametersOfFleet();
  });
  const shown = useComputed(() => {
    const names = parseColumns(columns.value) ?? usualColumns(parameters.value);
    return columnsOf(names, parameters.value);
  });
  const rows = useComputed(() => {
    countedMs.value;
    return sortObjects(visible.value, by.value, shown.value);
  });
  return { shown: shown.value, rows: rows.value };
}

export function ObjectTable() {
  const { shown, rows } = useRows();
  const selected = selectedId.value === null ? -1 : rows.findIndex(({ _id }) => _id === selectedId.value);
  const { element, first, last, onScroll } = useVirtualRows({
    count: rows.length,
    rowPx: ROW_PX,
    headPx: ROW_PX,
    shown: selected,
  });
  const canChoose = mayChoose();
  const onArrow = useTableKeys(element, rows.length);
  const onKey = (event: KeyboardEvent): void => {
    if (canChoose && onChoiceKey(event, rows)) event.preventDefault();
    else onArrow(event);
  };
  return (
    <section class="object-table" aria-label={t('view.table')}>
      <p class="tiles-head">
        <Columns shown={shown} />
        <button type="button" class="link-button" onClick={() => download(shown, rows)}>
          <Icon name="download" size={16} /> {t('table.csv')}
        </button>
        {canChoose && <ChoiceBar rows={rows} />}
      </p>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the rows in it */}
      <div ref={element} class="object-rows" onScroll={onScroll} onKeyDown={onKey}>
        <table aria-rowcount={rows.length + 1}>
          <colgroup>
            {canChoose && <col class="choice" />}
            {shown.map(({ name }) => (
              <col key={name} class={name === 'name' || name === 'alarm' ? 'wide' : undefined} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {canChoose && <ChooseAll rows={rows} />}
              {shown.map((column) => (
                <Title key={column.name} column={column} />
              ))}
            </tr>
          </thead>
          <tbody>
            <tr class="spare" style={{ height: `${first * ROW_PX}px` }} />
            {rows.slice(first, last).map(({ _id }, index) => (
              <Row key={_id} id={_id} index={first + index} columns={shown} canChoose={canChoose} />
            ))}
            <tr class="spare" style={{ height: `${(rows.length - last) * ROW_PX}px` }} />
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Columns({ shown }: { shown: readonly Column[] }) {
  const isOpen = useSignal(false);
  const set = (open: boolean) => (): void => {
    isOpen.value = open;
  };
  return (
    <>
      <button type="button" class="link-button" onClick={set(true)}>
        <Icon name="settings" size={16} /> {t('table.columns')}
      </button>
      {isOpen.value && <ColumnPicker own={ownTitles()} usual={shown.map(({ name }) => name)} onClose={set(false)} />}
    </>
  );
}

/** Numbers begin with the greatest. A third click is the order of the list again. */
function Title({ column: { name, title, isNumber } }: { column: Column }) {
  const show = useShow();
  const [begin, then] = isNumber ? [`-${name}`, name] : [name, `-${name}`];
  const isUp = by.value === name;
  const isDown = by.value === `-${name}`;
  const next = by.value === begin ? then : by.value === then ? null : begin;
  return (
    <th
      scope="col"
      class={isNumber ? 'number' : undefined}
      aria-sort={isUp ? 'ascending' : isDown ? 'descending' : undefined}
    >
      <button type="button" class="sort" title={title} onClick={() => show({ by: next })}>
        {title}
        <span aria-hidden="true">{isUp ? ' ↑' : isDown ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}

interface RowProps {
  readonly id: string;
  readonly index: number;
  readonly columns: readonly Column[];
  readonly canChoose: boolean;
}

function Row({ id, index, columns, canChoose }: RowProps) {
  stateRevision.value;
  objectRevision.value;
  const show = useShow();
  const object = objects.get(id);
  if (object === undefined) return null;
  const isSelected = selectedId.value === id;
  const select = (): void => show({ object: id });
  const hasName = columns.some(({ name }) => name === 'name');
  return (
    <tr aria-rowindex={index + 2} class={isSelected ? 'selected' : undefined} onClick={select}>
      {canChoose && <ChooseOne object={object} />}
      {columns.map((column, at) => {
        const text = column.text(object);
        const isButton = column.name === 'name' || (!hasName && at === 0);
        return (
          <td key={column.name} class={classOf(column, id)} title={text}>
            {isButton ? (
              <button type="button" data-index={index} aria-pressed={isSelected}>
                <Mark object={object} />
                <span>{text || object.name}</span>
              </button>
            ) : (
              <>
                <ToneMark {...column.meaning?.(object)} />
                {text}
              </>
            )}
          </td>
        );
      })}
    </tr>
  );
}

function classOf({ name, isNumber }: Column, id: string): string | undefined {
  if (name === 'alarm') return `alarm ${worstByObject.value.get(id)?.severity ?? ''}`;
  return isNumber ? 'number' : undefined;
}

/** Arrows, Page Up and Down, Home and End lead through the rows; Enter shows the object of one. */
function useTableKeys(element: { readonly current: HTMLElement | null }, count: number) {
  const wanted = useRef<number | null>(null);
  // It may only now be in view.
  useEffect(() => {
    if (wanted.current === null) return;
    const button = element.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"]`);
    if (!button) return;
    wanted.current = null;
    button.focus({ preventScroll: true });
  });
  const again = useSignal(0);
  again.value;
  return (event: KeyboardEvent): void => {
    const list = element.current;
    const from = event.target instanceof HTMLElement ? event.target.dataset.index : undefined;
    if (list === null || from === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(list.clientHeight / ROW_PX) - 2);
    const steps: Readonly<Record<string, number>> = {
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -page,
      PageDown: page,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    const isLeft = step === undefined || (event.key === 'ArrowUp' && from === '0');
    if (isLeft) return;
    event.preventDefault();
    const to = Math.min(count - 1, Math.max(0, Number(from) + step));
    wanted.current = to;
    const topPx = to * ROW_PX;
    if (topPx < list.scrollTop) list.scrollTop = topPx;
    const bottomPx = topPx + 2 * ROW_PX - list.clientHeight;
    if (bottomPx > list.scrollTop) list.scrollTop = bottomPx;
    again.value++;
  };
}

function download(columns: readonly Column[], rows: ReturnType<typeof visible.peek>): void {
  const titles = columns.map(({ title }) => title);
  const cells = rows.map(({ _id }) => {
    const object = objects.get(_id);
    return columns.map(({ cell }) => (object === undefined ? null : cell(object)));
  });
  const url = URL.createObjectURL(new Blob([toCsv([titles, ...cells])], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${t('view.table')}.csv`;
  link.click();
  URL.revokeObjectURL(url);
}
