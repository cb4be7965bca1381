/** The fields of an object, the device behind it, and its removal. */
import { type Signal, useSignal } from '@preact/signals';
import { Confirm } from '../parts/confirm.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { labelsOf } from '../state/by-name.js';
import { type FleetObject, removeObject } from '../state/fleet.js';
import { useLocation } from '../state/location.js';
import { groupsBelow, type Named, namedOf, titleOf } from '../state/references.js';
import { may, user } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { ConnectDevice } from './connect-device.js';
import { OfflineAfter } from './offline-after.js';
import { Sharing } from './sharing.js';

export function SettingsTab({ object }: { object: FleetObject }) {
  const path = `/objects/${object._id}`;
  const connections = useSignal(0);
  return (
    <>
      {may('PATCH', path) ? <Fields object={object} /> : <p class="hint">{t('settings.readOnly')}</p>}
      {may('PATCH', path) && <OfflineAfter objectId={object._id} revision={connections.value} />}
      <ConnectDevice object={object} onConnect={() => write(connections)(connections.peek() + 1)} />
      {may('POST', `${path}/access`) && may('GET', '/users') && <Sharing objectId={object._id} />}
      {may('DELETE', path) && <Removal object={object} />}
    </>
  );
}

const toLabels = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((label) => label.trim())
      .filter((label) => label !== ''),
  ),
];

/** One's own group and those below it; none for an object of another group, which only its own people move. */
function groupsToMove(present: string): readonly Named[] {
  const all = namedOf('groups');
  const below = groupsBelow(user.value?.group ?? '', all);
  return below.has(present) ? all.filter(({ _id }) => below.has(_id)) : [];
}

interface TextProps {
  readonly name: string;
  readonly label: string;
  readonly text: Signal<string>;
  readonly hint?: string;
  readonly required?: boolean;
  readonly rows?: number;
}

const Text = ({ text, ...rest }: TextProps) => <Field {...rest} value={text.value} onInput={write(text)} />;

interface ChoiceProps {
  readonly label: string;
  readonly name?: string;
  readonly chosen: Signal<string>;
  readonly among: readonly Named[];
}

const Choice = ({ chosen, among, ...rest }: ChoiceProps) => (
  <Select
    {...rest}
    value={chosen.value}
    options={among.map((one) => [one._id, titleOf(one)])}
    onChange={write(chosen)}
  />
);

function Fields({ object }: { object: FleetObject }) {
  const name = useSignal(object.name);
  const id = useSignal(object.id);
  const status = useSignal(object.status ?? '');
  const description = useSignal(String(object.description ?? ''));
  const knownLabels = labelsOf(object).join(', ');
  const labels = useSignal(knownLabels);
  const active = useSignal(object.active);
  const model = useSignal(object.model);
  const models = namedOf('models');
  const group = useSignal(object.group);
  const groups = may('POST', `/objects/${object._id}/move`) ? groupsToMove(object.group) : [];
  const work = useWork();
  const save = async (): Promise<void> => {
    const body = {
      name: name.value,
      status: status.value,
      active: active.value,
      ...(id.value !== object.id && { id: id.value }),
      ...(model.value !== object.model && { model: model.value }),
      ...(labels.value !== knownLabels && { labels: toLabels(labels.value) }),
      ...(description.value !== (object.description ?? '') && { description: description.value }),
    };
    const path = { id: object._id };
    await request('PATCH /api/v1/objects/{id}', { path, body });
    if (group.value !== object.group)
      await request('POST /api/v1/objects/{id}/move', { path, body: { group: group.value } });
    notify(t('profile.saved'));
  };
  return (
    <Section title={t('settings.fields')}>
      <Form work={work} submit={t('action.save')} onSubmit={save}>
        <Text name="name" label={t('welcome.name')} text={name} required />
        <Text name="id" label={t('welcome.id')} hint={t('settings.idHint')} text={id} required />
        {models.length > 0 && <Choice label={t('settings.model')} chosen={model} among={models} />}
        {groups.length > 1 && <Choice label={t('entity.group')} name="group" chosen={group} among={groups} />}
        <Text name="status" label={t('settings.status')} text={status} />
        <Text name="labels" label={t('settings.labels')} hint={t('settings.labelsHint')} text={labels} />
        <Text name="description" label={t('settings.description')} text={description} rows={2} />
        <label class="check">
          <input
            type="checkbox"
            checked={active.value}
            onChange={(event) => write(active)(event.currentTarget.checked)}
          />
          {t('settings.active')}
        </label>
      </Form>
    </Section>
  );
}

function Removal({ object }: { object: FleetObject }) {
  const isAsking = useSignal(false);
  const { route } = useLocation();
  return (
    <Section
      title={t('settings.remove')}
      about={t('settings.removeAbout')}
      action={
        <button type="button" class="button danger" onClick={() => write(isAsking)(true)}>
          {t('action.remove')}
        </button>
      }
    >
      {isAsking.value && (
        <Confirm
          title={t('settings.removeTitle', { name: object.name })}
          text={t('settings.removeAbout')}
          action={t('action.remove')}
          onConfirm={async () => {
            await request('DELETE /api/v1/objects/{id}', { path: { id: object._id } });
            removeObject(object._id);
            route('/');
          }}
          onClose={() => write(isAsking)(false)}
        />
      )}
    </Section>
  );
}
