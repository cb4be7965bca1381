/** How long the device of an object may be silent until the object is offline. */
import { useSignal } from '@preact/signals';
import { Field, Form, Problem, useWork } from '../parts/form.js';
import { notify, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

/** The objects of the list come without their `config`, so this page reads it. */
export function OfflineAfter({ objectId }: { objectId: string }) {
  const { data, error } = useFetched(async () => {
    const { config } = await request('GET /api/v1/objects/{id}', { path: { id: objectId } });
    return String(config?.offlineAfter ?? '');
  }, [objectId]);
  return (
    <Section title={t('state.offline')}>
      <Problem error={error.value} />
      {data.value === null && !error.value && <Skeleton rows={1} />}
      {data.value !== null && <DurationForm objectId={objectId} stored={data.value} />}
    </Section>
  );
}

function DurationForm({ objectId, stored }: { objectId: string; stored: string }) {
  const duration = useSignal(stored);
  const work = useWork();
  const save = async (): Promise<void> => {
    const body = { config: { offlineAfter: duration.value.trim() || null } };
    await request('PATCH /api/v1/objects/{id}', { path: { id: objectId }, body });
    notify(t('profile.saved'));
  };
  return (
    <Form work={work} submit={t('settings.apply')} onSubmit={save}>
      <Field
        {...{ name: 'config.offlineAfter', label: t('settings.offlineAfter'), value: duration.value }}
        {...{ hint: t('settings.offlineAfterHint'), autocomplete: 'off' }}
        onInput={write(duration)}
      />
    </Form>
  );
}
