/** The arguments of a command, with the values that they have unless the sender says otherwise. */
import { parseTypedValue } from '../../core/exact-json.js';
import { Icon } from '../parts/icon.js';
import type { Json } from '../state/api.js';
import { t } from '../text/language.js';
import { type Node, setField } from './tree.js';

interface ParamProps {
  readonly node: Node;
  readonly onChange: (node: Node) => void;
}

export function ParamFields({ node, onChange }: ParamProps) {
  const params = Object.entries((node.params ?? {}) as Json);
  const set = (next: readonly (readonly [string, unknown])[]): void =>
    onChange(setField(node, 'params', next.length === 0 ? undefined : Object.fromEntries(next)));
  const replace = (index: number, name: string, value: unknown): void =>
    set(params.map((one, at) => (at === index ? [name, value] : one)));
  return (
    <fieldset class="params">
      <legend>{t('models.params')}</legend>
      {params.map(([name, value], index) => (
        <div key={index} class="param">
          <input
            aria-label={t('models.paramName')}
            value={name}
            onChange={(event) => replace(index, event.currentTarget.value, value)}
          />
          <input
            aria-label={t('models.paramValue', { name })}
            value={typeof value === 'string' ? value : JSON.stringify(value)}
            onChange={(event) => replace(index, name, parseTypedValue(event.currentTarget.value))}
          />
          <button
            type="button"
            class="icon-button"
            aria-label={t('entity.remove', { name })}
            onClick={() => set(params.filter((_, at) => at !== index))}
          >
            <Icon name="trash" size={16} />
          </button>
        </div>
      ))}
      <button type="button" class="button small" onClick={() => set([...params, [freeName(params), '']])}>
        <Icon name="plus" size={16} /> {t('models.addParam')}
      </button>
    </fieldset>
  );
}

function freeName(params: readonly (readonly [string, unknown])[]): string {
  const names = new Set(params.map(([name]) => name));
  for (let number = 1; ; number++) if (!names.has(`param${number}`)) return `param${number}`;
}
