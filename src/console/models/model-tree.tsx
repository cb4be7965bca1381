/** The nodes of a model as nested lists. */
import { Icon, type IconName } from '../parts/icon.js';
import { t } from '../text/language.js';
import { childrenOf, type Node, type Path } from './tree.js';

interface TreeProps {
  readonly node: Node;
  readonly path: Path;
  readonly selected: Path | null;
  readonly onSelect: (path: Path) => void;
}

export function ModelTree({ node, path, selected, onSelect }: TreeProps) {
  const children = childrenOf(node);
  if (children.length === 0) return null;
  return (
    <ul class="tree">
      {children.map((child, index) => {
        const own = [...path, index];
        const isSelected = selected !== null && own.join('.') === selected.join('.');
        return (
          <li key={index}>
            <button type="button" aria-current={isSelected ? 'true' : undefined} onClick={() => onSelect(own)}>
              <Icon name={iconOf(child)} size={16} />
              <span>{child.name || child.id || t('models.unnamed')}</span>
              {child.id && child.name && <code>{child.id}</code>}
            </button>
            <ModelTree node={child} path={own} selected={selected} onSelect={onSelect} />
          </li>
        );
      })}
    </ul>
  );
}

function iconOf({ type }: Node): IconName {
  if (type === 'argument') return 'activity';
  return type === 'action' ? 'zap' : 'box';
}
