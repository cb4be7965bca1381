/** The entities of a store as a table: search, create, change, remove. */

import { useSignal } from '@preact/signals';
import { Age } from '../parts/age.js';
import { toColor } from '../parts/color.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Swatch } from '../parts/labels.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { SearchField } from '../parts/search-field.js';
import { Section } from '../parts/tabs.js';
import { type Entity, list } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { toAddress } from '../state/location.js';
import { loadPart, withTextsOf } from '../state/parts.js';
import { forgetNames, nameOf } from '../state/references.js';
import { isOwn, may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, formatNumber, t } from '../text/language.js';
import type { Opened } from './entity-dialog.js';
import { columnsOf, type EntityColumn, type EntityKind, labelOf } from './kinds.js';

const PAGE = 200;

export function EntityPage({ kind }: { kind: EntityKind }) {
  const search = useSignal('');
  const name = `${kind.store} ${search.value}`;
  const fetchList = async () => {
    // One more, to know whether there are more.
    const query = { search: search.value || undefined, limit: PAGE + 1 };
    const found = await list(`/${kind.store}`, { ...query, sortBy: kind.isNewestFirst ? '-_id' : undefined });
    return { entities: found.slice(0, PAGE), isCut: found.length > PAGE };
  };
  const { data, error, seenMs, reload } = useFetched(fetchList, [kind.store, search.value], name);
  const { opened, dialog, open } = useDialog();
  const changed = async (): Promise<void> => {
    forgetNames(kind.store);
    await reload();
  };
  return (
    <Section
      title={t(kind.title)}
      about={t(kind.about)}
      action={<NewButton kind={kind} onClick={() => open({ dialog: 'form', entity: null })} />}
    >
      <SearchField label={t('entity.search')} value={search.value} onInput={write(search)} />
      <Problem error={error.value} seenMs={seenMs.value} />
      {data.value === null && !error.value && <Skeleton rows={4} />}
      {data.value?.entities.length === 0 && <Empty icon="database" title={t('entity.none')} />}
      {data.value !== null && data.value.entities.length > 0 && (
        <EntityTable kind={kind} entities={data.value.entities} onOpen={open} />
      )}
      {data.value?.isCut && <p class="hint">{t('entity.cut', { count: PAGE })}</p>}
      {dialog.value && <dialog.value.EntityDialog kind={kind} opened={opened} onChange={changed} />}
    </Section>
  );
}

/** The dialogs are loaded when the first one is opened. */
function useDialog() {
  const opened = useSignal<Opened | null>(null);
  const dialog = useSignal<typeof import('./entity-dialog.js') | null>(null);
  const open = (next: Opened): void => {
    opened.value = next;
    void loadPart(() => import('./entity-dialog.js').then(withTextsOf)).then(write(dialog));
  };
  return { opened, dialog, open };
}

function NewButton({ kind, onClick }: { kind: EntityKind; onClick: () => void }) {
  if (kind.fields === null || !may('POST', `/${kind.store}`)) return null;
  if (kind.page !== undefined) {
    return (
      <a class="button primary" href={toAddress(`${kind.page}/new`)}>
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
  readonly onOpen: (opened: Opened) => void;
}

function EntityTable({ kind, entities, onOpen }: TableProps) {
  const columns = columnsOf(kind, entities);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
    <section class="table" tabIndex={0} aria-label={t(kind.title)}>
      <table class="rows">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col">
                {titleOf(column)}
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
                <td key={column.name} data-title={titleOf(column)}>
                  {kind.page !== undefined && column.name === 'name' ? (
                    <a href={toAddress(`${kind.page}/${entity._id}`)}>{labelOf(entity)}</a>
                  ) : (
                    <Cell value={entity[column.name]} column={column} />
                  )}
                </td>
              ))}
              <td>
                <Actions kind={kind} entity={entity} onOpen={onOpen} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const titleOf = ({ name, text, label }: EntityColumn): string => label ?? (text ? t(text) : name);

function Actions({ kind: { store, fields, page }, entity, onOpen }: Omit<TableProps, 'entities'> & { entity: Entity }) {
  if (!isOwn(entity)) return null;
  const path = `/${store}/${entity._id}`;
  return (
    <div class="actions">
      {store === 'handlers' && may('GET', `${path}/deliveries`) && (
        <button type="button" class="button small" onClick={() => onOpen({ dialog: 'webhook', entity })}>
          {t('webhook.messages')}
        </button>
      )}
      {store === 'sources' && (
        <button type="button" class="button small" onClick={() => onOpen({ dialog: 'source', entity })}>
          {t('source.connect')}
        </button>
      )}
      {store === 'audit' && entity.after != null && (
        <button type="button" class="button small" onClick={() => onOpen({ dialog: 'changes', entity })}>
          {t('entity.changes')}
        </button>
      )}
      {fields !== null && page === undefined && may('PATCH', path) && (
        <button type="button" class="button small" onClick={() => onOpen({ dialog: 'form', entity })}>
          {t('entity.edit')}
        </button>
      )}
      {store !== 'audit' && may('DELETE', path) && (
        <button
          type="button"
          class="icon-button"
          aria-label={t('entity.remove', { name: labelOf(entity) })}
          onClick={() => onOpen({ dialog: 'removal', entity })}
        >
          <Icon name="trash" size={16} />
        </button>
      )}
    </div>
  );
}

const SHOWN_ITEMS = 3;
const SHOWN_CHARACTERS = 80;

function Cell({ value, column: { name, kind, store = '' } }: { value: unknown; column: EntityColumn }) {
  if (kind === 'check') return <>{t(value === false ? 'value.false' : 'value.true')}</>;
  if (value === undefined || value === null) return <span class="quiet">–</span>;
  if (kind === 'date') return <>{formatDateTime(Number(value))}</>;
  if (kind === 'age') return <Age ms={Number(value)} />;
  if (kind === 'reference') return <>{nameOf(store, value)}</>;
  if (name === 'color') {
    return (
      <>
        <Swatch color={toColor(value)} /> {toText(value)}
      </>
    );
  }
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
