/** Buttons to choose parameters by. A device may have thousands of them: then some are shown, and a search finds the others. */
import { useSignal } from '@preact/signals';
import { fold } from '../../core/fold.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';

const MOST_CHIPS = 30;

interface ParameterChipsProps {
  readonly parameters: readonly { readonly name: string; readonly label: string }[];
  readonly chosen: readonly string[];
  readonly onToggle: (name: string) => void;
}

export function ParameterChips({ parameters, chosen, onToggle }: ParameterChipsProps) {
  const search = useSignal('');
  const wanted = fold(search.value.trim());
  const found =
    wanted === ''
      ? parameters
      : parameters.filter(({ name, label }) => chosen.includes(name) || fold(`${label}\n${name}`).includes(wanted));
  // The chosen ones stay, so that they can be taken back.
  const first = found.filter(({ name }, index) => index < MOST_CHIPS || chosen.includes(name));
  return (
    <>
      {parameters.length > MOST_CHIPS && (
        <div class="search">
          <input
            type="search"
            aria-label={t('chips.search')}
            placeholder={t('chips.search')}
            value={search.value}
            onInput={(event) => write(search)(event.currentTarget.value)}
          />
        </div>
      )}
      <fieldset class="chips" aria-label={t('live.parameter')}>
        {first.map(({ name, label }) => (
          <button
            key={name}
            type="button"
            class="chip"
            aria-pressed={chosen.includes(name)}
            onClick={() => onToggle(name)}
          >
            {label}
          </button>
        ))}
      </fieldset>
      {found.length > first.length && (
        <p class="hint">{t('chips.more', { count: formatNumber(found.length - first.length) })}</p>
      )}
    </>
  );
}
