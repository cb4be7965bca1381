/** The entities of a store as a table: search, create, change, remove. */
import { useSignal } from '@preact/signals';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { Section } from '../parts/tabs.js';
import { call, type Entity, toQuery } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { forgetNames, nameOf } from '../state/references.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, formatNumber, t } from '../text/language.js';
import { EntityForm } from './entity-form.js';
import { columnsOf, type EntityColumn, type EntityKind, isBuiltIn, labelOf } from './kinds.js';

const PAGE = 200;

export function EntityPage({ kind }: { kind: EntityKind }) {
  const search = useSignal('');
  const { data, error, reload } = useFetched(
    () =>
      call<Entity[]>(
        'GET',
        `/${kind.store}${toQuery({ search: search.value, limit: PAGE, sortBy: kind.isNewestFirst ? '-_id' : null })}`,
      ),
    [kind.store, search.value],
  );
  const edited = useSignal<Entity | 'new' | null>(null);
  const removed = useSignal<Entity | null>(null);
  const changed = async (): Promise<void> => {
    forgetNames(kind.store);
    await reload();
  };
  return (
    <Section
      title={t(kind.title)}
      about={t(kind.about)}
      action={<NewButton kind={kind} onClick={() => write(edited)('new')} />}
    >
      <SearchField label={t('entity.search')} value={search.value} onInput={write(search)} />
      <Problem error={error.value} />
      {data.value === null && !error.value && <Skeleton rows={4} />}
      {data.value?.length === 0 && <Empty icon="database" title={t('entity.none')} />}
      {(data.value?.length ?? 0) > 0 && (
        <EntityTable kind={kind} entities={data.value ?? []} onEdit={write(edited)} onRemove={write(removed)} />
      )}
      {data.value?.length === PAGE && <p class="hint">{t('entity.cut', { count: PAGE })}</p>}
      {edited.value && (
        <EntityForm
          kind={kind}
          entity={edited.value === 'new' ? null : edited.value}
          onDone={changed}
          onClose={() => write(edited)(null)}
        />
      )}
      {removed.value && (
        <Removal kind={kind} entity={removed.value} onDone={changed} onClose={() => write(removed)(null)} />
      )}
    </Section>
  );
}

function NewButton({ kind, onClick }: { kind: EntityKind; onClick: () => void }) {
  if (kind.fields === null || !may('POST', `/${kind.store}`)) return null;
  if (kind.page !== undefined) {
    return (
      <a class="button primary" href={`${kind.page}/new`}>
        <Icon name="plus" /> {t('entity.new')}
      </a>
    );
  }
  return (
    <button type="button" class="button primary" onClick={onClick}>
      <Icon name="plus" /> {t('entity.new')}
    </button>
  );
}

interface TableProps {
  readonly kind: EntityKind;
  readonly entities: readonly Entity[];
  readonly onEdit: (entity: Entity) => void;
  readonly onRemove: (entity: Entity) => void;
}

function EntityTable({ kind, entities, onEdit, onRemove }: TableProps) {
  const columns = columnsOf(kind, entities);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
    <section class="table" tabIndex={0} aria-label={t(kind.title)}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, text }) => (
              <th key={name} scope="col">
                {text ? t(text) : name}
              </th>
            ))}
            <th scope="col">
              <span class="visually-hidden">{t('entity.actions')}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {entities.map((entity) => (
            <tr key={entity._id}>
              {columns.map((column) => (
                <td key={column.name}>
                  {kind.page !== undefined && column.name === 'name' ? (
                    <a href={`${kind.page}/${entity._id}`}>{labelOf(entity)}</a>
                  ) : (
                    <Cell value={entity[column.name]} column={column} />
                  )}
                </td>
              ))}
              <td>
                <Actions kind={kind} entity={entity} onEdit={onEdit} onRemove={onRemove} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Actions({
  kind: { store, fields, page },
  entity,
  onEdit,
  onRemove,
}: Omit<TableProps, 'entities'> & { entity: Entity }) {
  if (isBuiltIn(entity)) return null;
  const path = `/${store}/${entity._id}`;
  return (
    <div class="actions">
      {fields !== null && page === undefined && may('PATCH', path) && (
        <button type="button" class="button small" onClick={() => onEdit(entity)}>
          {t('entity.edit')}
        </button>
      )}
      {store !== 'audit' && may('DELETE', path) && (
        <button
          type="button"
          class="icon-button"
          aria-label={t('entity.remove', { name: labelOf(entity) })}
          onClick={() => onRemove(entity)}
        >
          <Icon name="trash" size={16} />
        </button>
      )}
    </div>
  );
}

const SHOWN_ITEMS = 3;
const SHOWN_CHARACTERS = 80;

function Cell({ value, column: { kind, store = '' } }: { value: unknown; column: EntityColumn }) {
  if (kind === 'check') return <>{t(value === false ? 'value.false' : 'value.true')}</>;
  if (value === undefined || value === null) return <span class="quiet">–</span>;
  if (kind === 'date') return <>{formatDateTime(Number(value))}</>;
  if (kind === 'age') return <Age ms={Number(value)} />;
  if (kind === 'reference') return <>{nameOf(store, value)}</>;
  if (kind !== 'list' || !Array.isArray(value)) return <>{toText(value)}</>;
  return (
    <ul class="scopes">
      {value.slice(0, SHOWN_ITEMS).map((item) => (
        <li key={item}>
          <code>{item}</code>
        </li>
      ))}
      {value.length > SHOWN_ITEMS && <li title={value.join('\n')}>+ {value.length - SHOWN_ITEMS}</li>}
    </ul>
  );
}

function toText(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return t(value ? 'value.true' : 'value.false');
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS - 1)}…` : text;
}

interface RemovalProps {
  readonly kind: EntityKind;
  readonly entity: Entity;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Removal({ kind, entity, onDone, onClose }: RemovalProps) {
  return (
    <Confirm
      title={t('settings.removeTitle', { name: labelOf(entity) })}
      text={t('entity.removeAbout')}
      action={t('action.remove')}
      onConfirm={async () => {
        await call('DELETE', `/${kind.store}/${entity._id}`);
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
