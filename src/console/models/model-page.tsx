/** One model: its tree of parameters and commands, as a form or as JSON. */
import { type Signal, signal, useSignal } from '@preact/signals';
import { forgetModels } from '../home/values.js';
import { Field, Form, Problem, useWork } from '../parts/form.js';
import { notify, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Entity, request, VigilError } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { toAddress, useLocation } from '../state/location.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { forgetNames } from '../state/references.js';
import { isOwn, may, pages } from '../state/session.js';
import { useTitle } from '../state/title.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { ModelEditor } from './model-editor.js';
import { addNode, type Node, type Path, placeOf, toRootPatch } from './tree.js';

interface Model extends Entity {
  readonly name: string;
  readonly data?: Node;
}

const NEW = 'new';

export function ModelPage({ id = NEW }: { id?: string }) {
  const { data, error } = useFetched(
    async (): Promise<Model> =>
      id === NEW ? { _id: '', name: '' } : (request('GET /api/v1/models/{id}', { path: { id } }) as Promise<Model>),
    [id],
  );
  useTitle(id === NEW ? t('models.new') : (data.value?.name ?? null));
  return (
    <div class="page">
      <p>
        <a href={toAddress('/models')}>{t('data.models')}</a>
      </p>
      <h1>{id === NEW ? t('models.new') : (data.value?.name ?? '…')}</h1>
      <Problem error={error.value} />
      {data.value === null && !error.value && <Skeleton rows={6} />}
      {data.value && <ModelForm key={data.value._id} model={data.value} />}
    </div>
  );
}

const EMPTY: Node = { children: [] };

function ModelForm({ model }: { model: Model }) {
  const isNew = model._id === '';
  const canSave = isNew ? may('POST', '/models') : may('PATCH', `/models/${model._id}`) && isOwn(model);
  const stored = useSignal(model.data ?? EMPTY);
  const name = useSignal(model.name);
  const tree = useSignal(stored.value);
  const selected = useSignal<Path | null>(null);
  const problem = useSignal<string | null>(null);
  const work = useWork();
  const { route } = useLocation();
  const save = async (): Promise<void> => {
    const body = { name: name.value, data: isNew ? tree.value : toRootPatch(stored.value, tree.value) };
    const saved = await (isNew
      ? request('POST /api/v1/models', { body })
      : request('PATCH /api/v1/models/{id}', { path: { id: model._id }, body }));
    stored.value = (saved.data as Node | undefined) ?? EMPTY;
    forgetNames('models');
    forgetModels();
    notify(t('profile.saved'));
    if (isNew) route(`/models/${saved._id}`, true);
  };
  const submit = (): Promise<void> =>
    save().catch((error: unknown) => {
      const refused = error instanceof VigilError ? placeOf(error.helper ?? '') : null;
      selected.value = refused ?? selected.value;
      throw error;
    });
  const isProposing = useSignal(false);
  return (
    <>
      <Form work={work} submit={t('action.save')} onSubmit={submit} disabled={!canSave || problem.value !== null}>
        <fieldset class="bare" disabled={!canSave}>
          <Section title={t('profile.details')} about={canSave ? '' : t('models.readOnly')}>
            <Field name="name" label={t('entity.name')} value={name.value} required onInput={write(name)} />
          </Section>
          <ModelEditor
            tree={tree}
            selected={selected}
            problem={problem}
            onMove={() => write(work.error)(null)}
            onPropose={pages.value.objects ? () => write(isProposing)(true) : null}
          />
        </fieldset>
      </Form>
      <Proposals modelId={isNew ? null : model._id} tree={tree} selected={selected} isOpen={isProposing} />
    </>
  );
}

const dialog = signal<typeof import('./propose-dialog.js') | null>(null);

interface ProposalsProps {
  readonly modelId: string | null;
  readonly tree: Signal<Node>;
  readonly selected: Signal<Path | null>;
  readonly isOpen: Signal<boolean>;
}

/** What the model could declare; loaded when somebody first asks for it. Beside the form, whose fields the Enter key sends. */
function Proposals({ modelId, tree, selected, isOpen }: ProposalsProps) {
  const part = usePart(dialog, () => import('./propose-dialog.js').then(withTextsOf), isOpen.value);
  if (!isOpen.value || part === null) return null;
  const add = (nodes: readonly Node[]): void => {
    for (const node of nodes) {
      const [changed, at] = addNode(tree.value, [], node);
      tree.value = changed;
      selected.value = at;
    }
    isOpen.value = false;
  };
  return <part.ProposeDialog modelId={modelId} tree={tree.value} onAdd={add} onClose={() => write(isOpen)(false)} />;
}
