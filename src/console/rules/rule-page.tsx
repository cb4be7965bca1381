/** One rule: its form, or all of it as JSON, and what it would have done in the past. */
import { type Signal, useSignal } from '@preact/signals';
import { FieldError } from '../parts/field-errors.js';
import { Form, Problem, useWork } from '../parts/form.js';
import { NotPermitted, notify, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Entity, type Json, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { toAddress, useLocation } from '../state/location.js';
import { isOwn, may } from '../state/session.js';
import { useTitle } from '../state/title.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { RuleFields } from './context.js';
import { contentOf, isObject, toChange } from './draft.js';
import { DryRun } from './dry-run.js';
import { JsonField } from './fields.js';
import { RuleForm } from './rule-form.js';

const NEW = 'new';
const NEW_RULE = { _id: '', name: '', severity: 'warning', active: true, when: { param: '', op: '>', value: 0 } };

export function RulePage({ id = NEW }: { id?: string }) {
  const { data, error } = useFetched(
    async (): Promise<Entity> =>
      id === NEW ? NEW_RULE : ((await request('GET /api/v1/rules/{id}', { path: { id } })) as unknown as Entity),
    [id],
  );
  const rule = data.value?._id === (id === NEW ? '' : id) ? data.value : null;
  const title = id === NEW ? t('rule.new') : String(rule?.name ?? '');
  useTitle(title || null);
  const isPermitted = id === NEW ? may('POST', '/rules') : may('GET', `/rules/${id}`);
  if (!isPermitted) return <NotPermitted request={id === NEW ? 'POST /rules' : 'GET /rules/*'} />;
  return (
    <div class="page rule-page">
      <p>
        <a href={toAddress('/rules')}>{t('data.rules')}</a>
      </p>
      <h1>{title || '…'}</h1>
      <Problem error={error.value} />
      {rule === null && !error.value && <Skeleton rows={6} />}
      {rule && <Editor key={rule._id} rule={rule} />}
    </div>
  );
}

function Editor({ rule }: { rule: Entity }) {
  const isNew = rule._id === '';
  const canSave = isNew ? may('POST', '/rules') : may('PATCH', `/rules/${rule._id}`) && isOwn(rule);
  const stored = useSignal(contentOf(rule));
  const draft = useSignal(stored.value);
  const problems = useSignal<ReadonlyMap<string, string>>(new Map());
  const isJson = useSignal(false);
  const work = useWork();
  const { route } = useLocation();
  const check = (): void => {
    for (const [place, problem] of problems.value) throw new FieldError(place, problem);
  };
  const save = async (): Promise<void> => {
    check();
    const sent = draft.value;
    const saved = await (isNew ? create(sent) : change(rule._id, stored.value, sent));
    notify(t('profile.saved'));
    if (isNew) return route(`/rules/${saved._id}`, true);
    stored.value = contentOf(saved);
    // What is typed meanwhile stays, for the next time.
    if (draft.value === sent) draft.value = stored.value;
  };
  const views = { draft, problems };
  return (
    <>
      {typeof rule.disabledReason === 'string' && (
        <p class="hint warn">{t('rule.disabled', { reason: rule.disabledReason })}</p>
      )}
      {!canSave && <p class="hint">{t('rule.readOnly')}</p>}
      <Form work={work} submit={t('action.save')} onSubmit={save} disabled={!canSave}>
        <Views isJson={isJson} />
        <fieldset class="bare" disabled={!canSave}>
          {isJson.value ? <JsonView {...views} /> : <RuleForm {...views} />}
        </fieldset>
        {may('POST', '/rules/test') && <DryRun rule={draft.value} work={work} check={check} />}
      </Form>
    </>
  );
}

const create = async (body: Json): Promise<Entity> =>
  (await request('POST /api/v1/{store}', { path: { store: 'rules' }, body })) as Entity;

async function change(id: string, before: Json, after: Json): Promise<Entity> {
  const { change: body, kept } = toChange(before, after);
  if (kept !== null) throw new FieldError('', t('data.notRemovable', { field: kept }));
  return (await request('PATCH /api/v1/{store}/{id}', { path: { store: 'rules', id }, body })) as Entity;
}

function Views({ isJson }: { isJson: Signal<boolean> }) {
  return (
    <div class="segments rule-views">
      {[false, true].map((one) => (
        <button key={String(one)} type="button" aria-pressed={isJson.value === one} onClick={() => write(isJson)(one)}>
          {one ? 'JSON' : t('models.form')}
        </button>
      ))}
    </div>
  );
}

interface ViewProps {
  readonly draft: Signal<Json>;
  readonly problems: Signal<ReadonlyMap<string, string>>;
}

function JsonView({ draft, problems }: ViewProps) {
  return (
    <RuleFields.Provider value={{ parameters: [], commands: [], problems }}>
      <Section title="JSON" about={t('rule.jsonAbout')}>
        <JsonField
          name=""
          label={t('rule.json')}
          rows={14}
          value={draft.value}
          onChange={(value) => {
            if (isObject(value)) draft.value = value;
          }}
        />
      </Section>
    </RuleFields.Provider>
  );
}
