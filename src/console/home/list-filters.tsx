/** Narrows the list and the map to a group, a model or a label. */
import { computed } from '@preact/signals';
import { Select } from '../parts/form.js';
import { labelsOf } from '../state/by-name.js';
import { objectRevision, objects } from '../state/fleet.js';
import { namedOf, nameOf, titleOf } from '../state/references.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { useShow } from './address.js';
import { type Narrowed, narrowed } from './selection.js';

type Options = readonly (readonly [string, string])[];

/** The models and labels that objects have. */
const used = computed(() => {
  objectRevision.value;
  const models = new Set<string>();
  const labels = new Set<string>();
  for (const object of objects.values()) {
    models.add(object.model);
    for (const label of labelsOf(object)) labels.add(label);
  }
  return { models: [...models], labels: [...labels].sort() };
});

function optionsOf(name: keyof Narrowed): Options {
  if (name === 'label') return used.value.labels.map((label) => [label, label]);
  if (name === 'group') return namedOf('groups').map((group) => [group._id, titleOf(group)]);
  return may('GET', '/models') ? used.value.models.map((model) => [model, nameOf('models', model)]) : [];
}

const NAMES = ['group', 'model', 'label'] as const;

/** Only choices that make a difference are offered. */
export function ListFilters() {
  const show = useShow();
  const choices = NAMES.map((name) => ({ name, chosen: narrowed.value[name], options: optionsOf(name) })).filter(
    ({ name, chosen, options }) => chosen !== null || options.length > (name === 'label' ? 0 : 1),
  );
  if (choices.length === 0) return null;
  const count = choices.filter(({ chosen }) => chosen !== null).length;
  return (
    <details class="narrow" open={count > 0}>
      <summary>
        {t('narrow.title')} {count > 0 && <span class="tag">{count}</span>}
      </summary>
      <div class="narrow-fields">
        {choices.map(({ name, chosen, options }) => (
          <Select
            key={name}
            label={t(`narrow.${name}`)}
            value={chosen ?? ''}
            options={[['', t('filter.all')], ...withChosen(options, chosen)]}
            onChange={(value) => show({ [name]: value || null })}
          />
        ))}
      </div>
    </details>
  );
}

/** What the address names stays a choice, even if no object has it. */
const withChosen = (options: Options, chosen: string | null): Options =>
  chosen === null || options.some(([value]) => value === chosen) ? options : [...options, [chosen, chosen]];
