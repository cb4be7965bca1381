/** The menu of saved views: opens one, saves what is shown as one, and removes one's own. */
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { notify, Skeleton } from '../parts/notices.js';
import { request } from '../state/api.js';
import { toAddress } from '../state/location.js';
import { usePart, withTextsOf } from '../state/parts.js';
import { groupsBelow, namedOf, nameOf, titleOf } from '../state/references.js';
import { may, user } from '../state/session.js';
import { write } from '../state/write.js';
import { t } from '../text/language.js';
import { isMine, loadSavedViews, pathOfView, type SavedView, savedViews } from './saved-views.js';

export function ViewsDialog({ onClose }: { onClose: () => void }) {
  const work = useWork();
  useEffect(() => void work.run(loadSavedViews), []);
  const isWall = useSignal(false);
  const part = usePart(wallForm, loadWallForm, isWall.value);
  const views = savedViews.value;
  if (views !== null && isWall.value && part) {
    return (
      <Dialog title={t('views.wall')} onClose={onClose} size="medium">
        <part.WallForm views={views} onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <Dialog title={t('views.title')} onClose={onClose} size="medium">
      <Problem error={work.error.value} />
      {views === null && work.isBusy.value && <Skeleton rows={3} />}
      {views?.length === 0 && <p class="quiet">{t('views.none')}</p>}
      {views !== null && views.length > 0 && (
        <ul class="saved-views">
          {views.map((view) => (
            <Item key={view._id} view={view} onOpen={onClose} />
          ))}
        </ul>
      )}
      {views !== null && views.length > 0 && may('POST', '/account/tokens') && (
        <button type="button" class="link-button" aria-busy={isWall.value} onClick={() => write(isWall)(true)}>
          {t('views.wall')}
        </button>
      )}
      {may('POST', '/views') && <Save onSaved={onClose} />}
    </Dialog>
  );
}

const wallForm = signal<typeof import('../wall/wall-form.js') | null>(null);

const loadWallForm = () => import('../wall/wall-form.js').then(withTextsOf);

function Item({ view, onOpen }: { view: SavedView; onOpen: () => void }) {
  const work = useWork();
  const { _id, name, shared, group } = view;
  const remove = (): void =>
    void work.run(async () => {
      await request('DELETE /api/v1/views/{id}', { path: { id: _id } });
      await loadSavedViews();
    });
  return (
    <li>
      <a href={toAddress(pathOfView(view))} onClick={onOpen}>
        <span>{name}</span>
        <span class="quiet">{shared ? nameOf('groups', group) : t('views.onlyMe')}</span>
      </a>
      {isMine(view) && may('DELETE', `/views/${_id}`) && (
        <button
          type="button"
          class="icon-button"
          aria-label={t('views.remove', { name })}
          aria-busy={work.isBusy.value}
          onClick={remove}
        >
          <Icon name="trash" size={16} />
        </button>
      )}
      <Problem error={work.error.value} />
    </li>
  );
}

/** What is shown, but for the object that is selected. */
function shownQuery(): string {
  const parameters = new URLSearchParams(location.search);
  parameters.delete('object');
  return parameters.toString();
}

/** One's own group and those below it: a view belongs to one of them. */
function groupOptions(): readonly (readonly [string, string])[] {
  const own = user.value?.group ?? '';
  const all = namedOf('groups');
  const below = groupsBelow(own, all);
  return all.filter(({ _id }) => below.has(_id)).map((group) => [group._id, titleOf(group)] as const);
}

function Save({ onSaved }: { onSaved: () => void }) {
  const work = useWork();
  const name = useSignal('');
  const group = useSignal('');
  const save = async (): Promise<void> => {
    const fields = { name: name.value.trim(), query: shownQuery(), shared: group.value !== '' };
    const place = group.value || user.value?.group;
    // Also before the menu has read them, and when another page has saved one since.
    await loadSavedViews();
    // One's own view of this name is replaced. Views do not change their group.
    const before = savedViews.value?.find((one) => one.name === fields.name && isMine(one) && one.group === place);
    if (before !== undefined && may('PATCH', `/views/${before._id}`))
      await request('PATCH /api/v1/views/{id}', { path: { id: before._id }, body: fields });
    else await request('POST /api/v1/views', { body: { ...fields, ...(group.value && { group: group.value }) } });
    notify(t('views.saved', { name: fields.name }));
    onSaved();
    await loadSavedViews();
  };
  return (
    <section class="save-view">
      <h3>{t('views.save')}</h3>
      <Form work={work} submit={t('action.save')} onSubmit={save}>
        <Field label={t('table.name')} name="name" value={name.value} onInput={write(name)} required />
        <Select
          label={t('views.for')}
          name="group"
          value={group.value}
          options={[['', t('views.onlyMe')], ...groupOptions()]}
          onChange={write(group)}
        />
      </Form>
    </section>
  );
}
