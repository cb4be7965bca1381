/** With whom an object is shared. */
import { useSignal } from '@preact/signals';
import { FieldError } from '../parts/field-errors.js';
import { Form, Problem, Select, useWork, useWorkOfEach } from '../parts/form.js';
import { Section } from '../parts/tabs.js';
import { type Entity, list, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';

interface SharedUser extends Entity {
  readonly login: string;
  readonly name?: string;
}

export function Sharing({ objectId }: { objectId: string }) {
  const { data, error, reload } = useFetched(async () => {
    const [users, object] = await Promise.all([
      list<SharedUser>('/users', { only: ['login', 'name'] }),
      request('GET /api/v1/objects/{id}', { path: { id: objectId } }),
    ]);
    return { users, access: object.access ?? [] };
  }, [objectId]);
  const chosen = useSignal('');
  const work = useWork();
  const ends = useWorkOfEach();
  const { users = [], access = [] } = data.value ?? {};
  const others = users.filter(({ _id }) => !access.includes(_id));
  const nameOf = (id: string): string => users.find(({ _id }) => _id === id)?.login ?? id;
  const share = async (): Promise<void> => {
    if (chosen.value === '') throw new FieldError('user', t('sharing.choose'));
    const body = { user: chosen.value };
    await request('POST /api/v1/objects/{id}/access', { path: { id: objectId }, body });
    chosen.value = '';
    await reload();
  };
  const unshare = async (id: string): Promise<void> => {
    await request('DELETE /api/v1/objects/{id}/access/{user}', { path: { id: objectId, user: id } });
    await reload();
  };
  return (
    <Section title={t('sharing.title')} about={t('sharing.about')}>
      <Problem error={error.value ?? ends.error.value} />
      <SharedWith names={access.map((id) => [id, nameOf(id)])} onEnd={(id) => void ends.run([id], () => unshare(id))} />
      {others.length > 0 && (
        <Form work={work} submit={t('sharing.share')} onSubmit={share}>
          <Select
            name="user"
            label={t('sharing.user')}
            value={chosen.value}
            options={[['', '–'], ...others.map((user) => [user._id, titleOf(user)] as const)]}
            onChange={write(chosen)}
          />
        </Form>
      )}
    </Section>
  );
}

const titleOf = ({ login, name }: SharedUser): string => (name && name !== login ? `${name} (${login})` : login);

function SharedWith({ names, onEnd }: { names: readonly [string, string][]; onEnd: (id: string) => void }) {
  return (
    <ul class="items">
      {names.map(([id, name]) => (
        <li key={id} class="item">
          <div class="item-text">
            <h3>{name}</h3>
          </div>
          <button type="button" class="button small" onClick={() => onEnd(id)}>
            {t('sharing.end')}
          </button>
        </li>
      ))}
    </ul>
  );
}
