/** How long the device of an object may be silent until the object is offline. */
import { useSignal } from '@preact/signals';
import { Field, Form, Problem, useWork } from '../parts/form.js';
import { notify, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

/** For a device of which nothing else is known. Without it, an object whose device sends over HTTP is online for ever. */
export const OFFLINE_AFTER = '10 min';

interface FieldProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

export const OfflineAfterField = (props: FieldProps) => (
  <Field
    name="config.offlineAfter"
    label={t('settings.offlineAfter')}
    hint={t('settings.offlineAfterHint')}
    autocomplete="off"
    {...props}
  />
);

/** Sets it where nobody has: a device is about to be connected. Returns whether it did. */
export async function ensureOfflineAfter(objectId: string): Promise<boolean> {
  const path = { id: objectId };
  const { config } = await request('GET /api/v1/objects/{id}', { path });
  if (config?.offlineAfter !== undefined) return false;
  await request('PATCH /api/v1/objects/{id}', { path, body: { config: { offlineAfter: OFFLINE_AFTER } } });
  return true;
}

interface OfflineAfterProps {
  readonly objectId: string;
  /** Changes when it was set elsewhere. */
  readonly revision: number;
}

/** The objects of the list come without their `config`, so this page reads it. */
export function OfflineAfter({ objectId, revision }: OfflineAfterProps) {
  const { data, error } = useFetched(async () => {
    const { config } = await request('GET /api/v1/objects/{id}', { path: { id: objectId } });
    return String(config?.offlineAfter ?? '');
  }, [objectId, revision]);
  return (
    <Section title={t('state.offline')}>
      <Problem error={error.value} />
      {data.value === null && !error.value && <Skeleton rows={1} />}
      {data.value !== null && <DurationForm key={data.value} objectId={objectId} stored={data.value} />}
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
      <OfflineAfterField value={duration.value} onInput={write(duration)} />
    </Form>
  );
}
