/** The commands that connect a device, to copy. */
import { useSignal } from '@preact/signals';
import { CopyBox } from '../parts/copy.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { connectionOf, textOf, WAY_NAMES, type Way, waysOf } from './connect.js';

export function Snippets({ id, token }: { id: string; token: string }) {
  const connection = connectionOf(id, token);
  const way = useSignal<Way>('curl');
  return (
    <div class="snippets">
      <fieldset class="segments" aria-label={t('connect.way')}>
        {waysOf(connection).map((one) => (
          <button key={one} type="button" aria-pressed={way.value === one} onClick={() => write(way)(one)}>
            {WAY_NAMES[one]}
          </button>
        ))}
      </fieldset>
      <CopyBox text={textOf(way.value, connection)} label={WAY_NAMES[way.value]} />
    </div>
  );
}
