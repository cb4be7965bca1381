/** What a change of a role means for its users, in words, before it is saved. */
import { ROOT_GROUP_ID } from '../../core/builtin.js';
import { type Entity, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { may, user } from '../state/session.js';
import { t, tn } from '../text/language.js';
import { type Grid, gained } from './grid.js';
import { phrasesOf } from './words.js';

interface EffectProps {
  readonly grid: Grid;
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** null for a new one. */
  readonly role: Entity | null;
  /** What else is to be said. */
  readonly note: string;
}

/** How many users have the role, of those whom the user sees; null if that is not known. */
function useCount(role: Entity | null): number | null {
  const { data } = useFetched(async () => {
    if (role === null || !may('GET', '/users')) return null;
    const { count } = (await request('GET /api/v1/users', {
      query: { meta: 'true', where: { role: role._id } },
    })) as { readonly count: number };
    return count;
  }, [role?._id]);
  return data.value;
}

export function Effect({ grid, before, after, role, note }: EffectProps) {
  const count = useCount(role);
  const more = phrasesOf(gained(before, after, grid), grid);
  const less = phrasesOf(gained(after, before, grid), grid);
  return (
    <div class="permission-effect" role="status">
      {note !== '' && <p class="quiet">{note}</p>}
      {role === null && more.length === 0 && <p>{t('roles.newMayNothing')}</p>}
      {role !== null && more.length === 0 && less.length === 0 && <p>{unchanged(count)}</p>}
      <Phrases title={role === null ? t('roles.newMay') : titleOf('MayNow', count)} phrases={more} />
      <Phrases title={titleOf('NoLonger', count)} phrases={less} />
      {count !== null && count > 0 && user.value?.group !== ROOT_GROUP_ID && <p class="quiet">{t('roles.seen')}</p>}
    </div>
  );
}

const unchanged = (count: number | null): string => {
  if (count === null) return t('roles.allUnchanged');
  return count === 0 ? t('roles.nobody') : tn('roles.unchanged', count);
};

/** Of a role that nobody is known to have, what its users may in general. */
function titleOf(what: 'MayNow' | 'NoLonger', count: number | null): string {
  if (count === null || count === 0) return t(`roles.all${what}`);
  return tn(what === 'MayNow' ? 'roles.mayNow' : 'roles.noLonger', count);
}

function Phrases({ title, phrases }: { title: string; phrases: readonly string[] }) {
  if (phrases.length === 0) return null;
  return (
    <p>
      <strong>{title}</strong> {phrases.join('; ')}
    </p>
  );
}
