/** A field that finds an object by name or id: a combobox whose suggestions are the browser's own. */
import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { fold } from '../../core/fold.js';
import { useFault } from '../parts/field-errors.js';
import { Note } from '../parts/form.js';
import { type FleetObject, objectRevision, objects } from '../state/fleet.js';
import { t } from '../text/language.js';

const MAX_SUGGESTIONS = 50;

interface ObjectFieldProps {
  readonly label: string;
  readonly onChoose: (objectId: string | null) => void;
}

export function ObjectField({ label, onChoose }: ObjectFieldProps) {
  const id = useId();
  const text = useSignal('');
  const { text: error, input: element, clear } = useFault<HTMLInputElement>('object');
  objectRevision.value;
  const wanted = fold(text.value.trim());
  const found = [...objects.values()].filter((object) => fold(`${object.name}\n${object.id}`).includes(wanted));
  const input = (value: string): void => {
    clear();
    text.value = value;
    onChoose(findNamed(value.trim())?._id ?? null);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={element}
        list={`${id}-list`}
        value={text.value}
        placeholder={t('list.search')}
        autocomplete="off"
        required
        aria-invalid={error ? true : undefined}
        aria-describedby={error && `${id}-note`}
        onInput={(event) => input(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {found.slice(0, MAX_SUGGESTIONS).map((object) => (
          <option key={object._id} value={object.id}>
            {object.name}
          </option>
        ))}
      </datalist>
      <Note id={`${id}-note`} error={error} />
    </div>
  );
}

/** The one object with this id or name; case and accents matter only where several have it without them. */
function findNamed(text: string): FleetObject | undefined {
  const all = [...objects.values()];
  for (const form of [(name: string) => name, fold]) {
    const found = all.filter(({ id, name }) => form(id) === form(text) || form(name) === form(text));
    if (found.length > 0) return found.length === 1 ? found[0] : undefined;
  }
  return undefined;
}
