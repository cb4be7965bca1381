/** Finds an object, and chooses which of its numbers are compared. */
import { useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { modelOf, toShown } from '../home/values.js';
import { isWorthChart, numberPathsOf } from '../objects/numbers.js';
import { ParameterChips } from '../objects/parameter-chips.js';
import { Problem } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { type ControlObjectFields, request } from '../state/api.js';
import { findObject, keyOf, ordered } from '../state/by-name.js';
import { useFetched } from '../state/fetched.js';
import { type FleetObject, parametersOf } from '../state/fleet.js';
import { t, tn } from '../text/language.js';
import { MOST_SERIES, type SeriesKey } from './compared.js';

const MOST_FOUND = 20;
const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

interface AddSeriesProps {
  readonly series: readonly SeriesKey[];
  readonly onChange: (series: readonly SeriesKey[]) => void;
}

export function AddSeries({ series, onChange }: AddSeriesProps) {
  const chosenId = useSignal<string | null>(null);
  const chosen = chosenId.value === null ? undefined : findObject(chosenId.value);
  return (
    <div class="compare-add no-print">
      <ObjectSearch
        onChoose={({ _id }) => {
          chosenId.value = _id;
        }}
      />
      {chosen && <Parameters key={chosen._id} object={chosen} series={series} onChange={onChange} />}
      {series.length >= MOST_SERIES && <p class="hint">{t('compare.full', { count: MOST_SERIES })}</p>}
    </div>
  );
}

/** A combobox: the arrows choose, Enter takes, and Esc closes the list. */
function ObjectSearch({ onChoose }: { onChoose: (object: FleetObject) => void }) {
  const id = useId();
  const text = useSignal('');
  const at = useSignal(0);
  const isOpen = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const found = isOpen.value ? objectsWith(text.value) : [];
  const active = Math.min(at.value, found.length - 1);
  const choose = (object: FleetObject | undefined): void => {
    if (object === undefined) return;
    text.value = object.name;
    isOpen.value = false;
    onChoose(object);
    input.current?.select();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (event.isComposing) return;
    if (event.key === 'Escape') isOpen.value = false;
    if (event.key === 'Enter') choose(found[active]);
    if (step === undefined) return;
    event.preventDefault();
    if (isOpen.value && found.length > 0) at.value = (active + step + found.length) % found.length;
    isOpen.value = true;
  };
  return (
    <div class="field combobox">
      <label for={id}>{t('compare.add')}</label>
      <input
        id={id}
        ref={input}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        placeholder={t('list.search')}
        value={text.value}
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
          isOpen.value = true;
        }}
        onClick={() => {
          isOpen.value = true;
        }}
        onBlur={() => {
          isOpen.value = false;
        }}
        onKeyDown={onKeyDown}
      />
      <p role="status" class="visually-hidden">
        {isOpen.value && tn('list.count', found.length)}
      </p>
      <Options id={id} found={found} active={active} onChoose={choose} />
    </div>
  );
}

interface OptionsProps {
  readonly id: string;
  readonly found: readonly FleetObject[];
  readonly active: number;
  readonly onChoose: (object: FleetObject) => void;
}

/** The field has the keys. */
function Options({ id, found, active, onChoose }: OptionsProps) {
  const list = useRef<HTMLDivElement>(null);
  // The field may be at the end of the page, and the list is longer than its place.
  useEffect(() => {
    if (active >= 0) list.current?.children[active]?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <div
      ref={list}
      id={`${id}-list`}
      class="object-options"
      role="listbox"
      aria-label={t('list.label')}
      hidden={found.length === 0}
    >
      {found.map((object, index) => (
        // The field has the keys; a click must not take the focus from it before it is one.
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
        <div
          key={object._id}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onChoose(object)}
        >
          <span>{object.name}</span> {object.id !== object.name && <small class="quiet">{object.id}</small>}
        </div>
      ))}
    </div>
  );
}

/** Those whose name begins with the text first. */
function objectsWith(text: string): FleetObject[] {
  const wanted = fold(text.trim());
  const first: FleetObject[] = [];
  const others: FleetObject[] = [];
  for (const object of ordered.value) {
    const { search } = keyOf(object);
    if (search.startsWith(wanted)) first.push(object);
    else if (others.length < MOST_FOUND && search.includes(wanted)) others.push(object);
    if (first.length === MOST_FOUND) break;
  }
  return [...first, ...others].slice(0, MOST_FOUND);
}

/** The numbers among the last values of an object. */
async function fetchNumbers(object: FleetObject): Promise<string[]> {
  const query = { state: 'latest-of-each', where: { _id: object._id }, limit: 1 } as const;
  const [found] = (await request('GET /api/v1/objects', { query })) as ControlObjectFields[];
  const values = Object.entries(found?.latest ?? {}).map(([name, { value }]) => [name, value] as const);
  const known = object.state === undefined ? [] : parametersOf(object.state);
  const paths = numberPathsOf([...known, ...values]);
  return [...paths.filter(isWorthChart), ...paths.filter((path) => !isWorthChart(path))];
}

function Parameters({ object, series, onChange }: AddSeriesProps & { object: FleetObject }) {
  const model = modelOf(object._id, object.model);
  const { data, error } = useFetched(() => fetchNumbers(object), [object._id]);
  const isOf = ({ object: key }: SeriesKey): boolean => key === object._id || key === object.id;
  const chosen = series.filter(isOf).map(({ path }) => path);
  const toggle = (path: string): void => {
    const others = series.filter((one) => !(isOf(one) && one.path === path));
    if (others.length < series.length) onChange(others);
    else if (series.length < MOST_SERIES) onChange([...series, { object: object._id, path }]);
  };
  if (error.value) return <Problem error={error.value} />;
  if (data.value === null) return <Skeleton rows={1} />;
  if (data.value.length === 0) return <p class="quiet">{t('compare.noNumbers', { name: object.name })}</p>;
  return (
    <div>
      <p class="quiet">{t('compare.numbersOf', { name: object.name })}</p>
      <ParameterChips
        parameters={data.value.map((name) => ({ name, label: toShown(name, 0, model).label }))}
        chosen={chosen}
        onToggle={toggle}
      />
    </div>
  );
}
