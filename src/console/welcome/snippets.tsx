/** The commands that connect a device, to copy. */
import { useSignal } from '@preact/signals';
import { CopyBox } from '../parts/copy.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { CLIENT_KIND_NAMES, type ClientKind, clientKindsOf, connectionOf, textOf } from './connect.js';

export function Snippets({ id, token }: { id: string; token: string }) {
  const connection = connectionOf(id, token);
  const way = useSignal<ClientKind>('curl');
  return (
    <div class="snippets">
      <fieldset class="segments" aria-label={t('connect.way')}>
        {clientKindsOf(connection).map((one) => (
          <button key={one} type="button" aria-pressed={way.value === one} onClick={() => write(way)(one)}>
            {CLIENT_KIND_NAMES[one]}
          </button>
        ))}
      </fieldset>
      <CopyBox text={textOf(way.value, connection)} label={CLIENT_KIND_NAMES[way.value]} />
    </div>
  );
}
