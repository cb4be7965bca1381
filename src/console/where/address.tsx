/** The address of a place, from the geocoder of the operator: only when a person asks for it. */
import { useSignal } from '@preact/signals';
import type { Position } from '../../core/position-fields.js';
import { explain } from '../parts/form.js';
import { requestWithoutLogin, VigilError } from '../state/api.js';
import { language, t } from '../text/language.js';

/** About a hundred metres: an address is shown until the object is farther away. */
const DIGITS = 3;

/** Why there is no answer: a 503 may be the geocoder, and the service itself be well. */
export const explainFailure = (error: unknown): string =>
  error instanceof VigilError && error.status === 503 ? t('where.addressFailed') : explain(error);

interface Asked {
  /** Where. */
  readonly key: string;
  /** Null until there is an answer. */
  readonly text: string | null;
  readonly isFailed?: boolean;
}

export function Address({ place }: { place: Position }) {
  const asked = useSignal<Asked | null>(null);
  const key = `${place.lat.toFixed(DIGITS)},${place.lon.toFixed(DIGITS)}`;
  const ask = (): void => {
    asked.value = { key, text: null };
    void findAddress(place).then((found) => {
      // Another one may have been asked for since.
      if (asked.peek()?.key === key) asked.value = { key, ...found };
    });
  };
  const shown = asked.value?.key === key ? asked.value : null;
  return (
    <p class="where-address">
      <span role="status">{shown && (shown.text ?? '…')}</span>{' '}
      {(shown === null || shown.isFailed) && (
        <button type="button" class="link-button" onClick={ask}>
          {t(shown === null ? 'where.address' : 'action.retry')}
        </button>
      )}
    </p>
  );
}

async function findAddress({ lat, lon }: Position): Promise<Pick<Asked, 'isFailed'> & { readonly text: string }> {
  try {
    const query = { lat, lon, lang: language.peek() };
    const { address } = await requestWithoutLogin('GET /api/v1/geocoder/reverse', { query });
    return { text: address ?? t('where.noAddress') };
  } catch (error) {
    return { text: explainFailure(error), isFailed: true };
  }
}
