/** Rows of a file: columns are matched to fields, what would happen is shown, then it is written, and what was refused is named. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Problem, Select, useWork } from '../parts/form.js';
import { namedOf } from '../state/references.js';
import { may } from '../state/session.js';
import { formatNumber, loadTexts, type TextLoader, t, tn } from '../text/language.js';
import type { Sheet } from './csv.js';
import {
  guessTargets,
  idsOf,
  type Known,
  type PlannedRow,
  type Present,
  planRows,
  type Target,
  targetsFor,
} from './plan.js';
import { Preview, Refusals } from './preview.js';
import { readPresent, type WriteOutcome, writeRows } from './send.js';

export { readFile } from './read-file.js';

const SHEET_TEXTS: TextLoader = {
  en: () => import('../text/english-sheet.js'),
  de: () => import('../text/german-sheet.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(SHEET_TEXTS);

/** Columns and rows of the file, which are written when the user says so. */
export function SheetTable({ sheet }: { sheet: Sheet }) {
  const targets = useSignal<Target[]>(guessTargets(sheet.columns));
  const objects = useSignal<ReadonlyMap<string, Present> | null>(null);
  const outcome = useSignal<WriteOutcome | null>(null);
  const isLeft = useRef(false);
  const reading = useWork();
  const writing = useWork();
  const idColumn = targets.value.indexOf('id');
  useEffect(
    () => () => {
      isLeft.current = true;
    },
    [],
  );
  const read = () =>
    reading.run(async () => {
      objects.value = null;
      objects.value = await readPresent(idsOf(sheet, targets.peek()));
    });
  useEffect(() => {
    void read();
  }, [idColumn]);
  const plan = objects.value === null ? null : planRows(sheet, targets.value, knownWith(objects.value));
  const forget = (): void => {
    outcome.value = null;
  };
  const write = (rows: readonly PlannedRow[]) =>
    writing.run(async () => {
      const told = (next: WriteOutcome): void => {
        outcome.value = next;
      };
      told(await writeRows(rows, told, () => isLeft.current));
      await read();
    });
  return (
    <>
      <p class="quiet">{tn('import.rows', sheet.rows.length)}</p>
      <Columns sheet={sheet} targets={targets} onChange={forget} />
      <Problem error={reading.error.value} />
      {plan && <Preview plan={plan} />}
      <Problem error={writing.error.value} />
      {plan && (
        <WriteButton plan={plan} isBusy={writing.isBusy.value} done={outcome.value?.done ?? 0} onWrite={write} />
      )}
      {outcome.value && <Refusals outcome={outcome.value} />}
    </>
  );
}

function knownWith(objects: ReadonlyMap<string, Present>): Known {
  const change = may('PATCH', '/objects');
  const move = change && may('POST', '/objects/any/move');
  return {
    objects,
    groups: namedOf('groups'),
    models: namedOf('models'),
    may: { create: may('POST', '/objects'), change, move },
  };
}

interface ColumnsProps {
  readonly sheet: Sheet;
  readonly targets: Signal<Target[]>;
  readonly onChange: () => void;
}

function Columns({ sheet: { columns, rows }, targets, onChange }: ColumnsProps) {
  const set = (at: number, target: Target): void => {
    // Each field has one column.
    targets.value = targets.value.map((one, index) => (index === at ? target : one === target ? '' : one));
    onChange();
  };
  return (
    <div class="row-fields">
      {columns.map((column, at) => (
        <Select
          key={`${at} ${column}`}
          label={column || t('import.unnamed', { count: formatNumber(at + 1) })}
          hint={rows.find(({ cells }) => cells[at])?.cells[at]?.slice(0, 60)}
          value={targets.value[at] ?? ''}
          options={targetsFor(column).map((target) => [target, target === '' ? t('import.ignored') : target])}
          onChange={(target) => set(at, target as Target)}
        />
      ))}
    </div>
  );
}

interface WriteButtonProps {
  readonly plan: readonly PlannedRow[];
  readonly isBusy: boolean;
  readonly done: number;
  readonly onWrite: (rows: readonly PlannedRow[]) => Promise<void>;
}

function WriteButton({ plan, isBusy, done, onWrite }: WriteButtonProps) {
  const rows = plan.filter(({ kind }) => kind === 'create' || kind === 'change');
  return (
    <div class="buttons">
      <button
        type="button"
        class="button primary"
        disabled={rows.length === 0}
        aria-busy={isBusy}
        onClick={() => void onWrite(rows)}
      >
        {tn('import.write', rows.length)}
      </button>
      <span role="status">{(isBusy || done > 0) && tn('import.done', done)}</span>
    </div>
  );
}
