/** The tree of a model beside the fields of the selected node; or all of it as JSON. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { parseExactJson } from '../../core/exact-json.js';
import { Field } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Section } from '../parts/tabs.js';
import { write } from '../state/write.js';
import { type TextKey, t } from '../text/language.js';
import { ModelTree } from './model-tree.js';
import { NodeForm } from './node-form.js';
import { addNode, changeNode, moveNode, type Node, nodeAt, type Path, removeNode } from './tree.js';

interface EditorProps {
  readonly tree: Signal<Node>;
  readonly selected: Signal<Path | null>;
  /** Why the JSON cannot be stored as it is typed. */
  readonly problem: Signal<string | null>;
  /** Called when another node is shown, or nodes are in other places. */
  readonly onMove: () => void;
  /** Called when the user wants to see what the model could declare; null for those who may not read that. */
  readonly onPropose: (() => void) | null;
}

export function ModelEditor(props: EditorProps) {
  const isJson = useSignal(false);
  return (
    <Section
      title={t('models.tree')}
      about={t('data.modelsAbout')}
      action={
        <div class="segments">
          {[false, true].map((one) => (
            <button
              key={String(one)}
              type="button"
              aria-pressed={isJson.value === one}
              onClick={() => write(isJson)(one)}
            >
              {one ? 'JSON' : t('models.form')}
            </button>
          ))}
        </div>
      }
    >
      {isJson.value ? <JsonView {...props} /> : <FormView {...props} />}
    </Section>
  );
}

const ADDED: readonly (readonly [string, TextKey, Node])[] = [
  ['argument', 'models.addArgument', { type: 'argument', id: '', dataType: 'number' }],
  ['action', 'models.addAction', { type: 'action', id: '' }],
  ['subsystem', 'models.addSubsystem', { type: 'subsystem', id: '', children: [] }],
];

function FormView({ tree, selected, onMove, onPropose }: EditorProps) {
  const added = useSignal<Path | null>(null);
  const path = selected.value;
  const node = path === null ? undefined : nodeAt(tree.value, path);
  const set = ([changed, at]: [Node, Path | null]): void => {
    tree.value = changed;
    selected.value = at;
    onMove();
  };
  const add = (node: Node): void => {
    const [changed, at] = addNode(tree.value, parentFor(tree.value, path), { ...node });
    added.value = at;
    set([changed, at]);
  };
  return (
    <div class="editor">
      <div>
        <div class="buttons">
          {ADDED.map(([type, text, node]) => (
            <button key={type} type="button" class="button small" onClick={() => add(node)}>
              <Icon name="plus" size={16} /> {t(text)}
            </button>
          ))}
          {onPropose && (
            <button type="button" class="button small" onClick={onPropose}>
              <Icon name="search" size={16} /> {t('models.propose')}
            </button>
          )}
        </div>
        <nav aria-label={t('models.tree')}>
          <ModelTree node={tree.value} path={[]} selected={path} onSelect={(at) => set([tree.value, at])} />
        </nav>
      </div>
      {node !== undefined && path !== null && (
        <section class="node" aria-label={t('models.node')}>
          <NodeButtons
            onMove={(by) => set(moveNode(tree.value, path, by))}
            onRemove={() => set([removeNode(tree.value, path), null])}
          />
          <NodeForm
            key={path.join('.')}
            node={node}
            prefix={`data.${path.map((index) => `children.${index}.`).join('')}`}
            isAdded={added.value === path}
            onChange={(changed) => {
              tree.value = changeNode(tree.value, path, () => changed);
            }}
          />
        </section>
      )}
    </div>
  );
}

/** Parameters and commands have no nodes below them: a new one becomes their sibling. */
function parentFor(tree: Node, path: Path | null): Path {
  const node = path === null ? undefined : nodeAt(tree, path);
  if (node === undefined || path === null) return [];
  return node.type === 'argument' || node.type === 'action' ? path.slice(0, -1) : path;
}

function NodeButtons({ onMove, onRemove }: { onMove: (by: -1 | 1) => void; onRemove: () => void }) {
  return (
    <div class="buttons">
      <button type="button" class="button small" onClick={() => onMove(-1)}>
        {t('models.up')}
      </button>
      <button type="button" class="button small" onClick={() => onMove(1)}>
        {t('models.down')}
      </button>
      <button type="button" class="button small danger" onClick={onRemove}>
        {t('action.remove')}
      </button>
    </div>
  );
}

function JsonView({ tree, problem: error }: EditorProps) {
  const text = useSignal(JSON.stringify(tree.value, null, 2));
  useEffect(() => () => write(error)(null), []);
  const input = (typed: string): void => {
    text.value = typed;
    try {
      const parsed = parseExactJson(typed);
      const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
      error.value = isObject ? null : t('models.notObject');
      if (isObject) tree.value = parsed as Node;
    } catch (thrown) {
      error.value = (thrown as Error).message;
    }
  };
  return (
    <Field
      {...{
        name: 'data',
        label: t('models.json'),
        hint: t('models.jsonHint'),
        value: text.value,
        rows: 20,
        error: error.value,
      }}
      onInput={input}
    />
  );
}
