/** Geofences in a list and on a map: draw, change and remove them. */
import { useSignal } from '@preact/signals';
import { DataTabs } from '../entities/data-tabs.js';
import { EntityForm } from '../entities/entity-form.js';
import { kindOf } from '../entities/kinds.js';
import { toColor } from '../parts/color.js';
import { Confirm } from '../parts/confirm.js';
import { Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, NotPermitted, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { areGeofencesCut, type Geofence, geofences, loadGeofences, MAX_GEOFENCES } from '../state/geofences.js';
import { isOwn, may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import { useDrawing } from './drawing.js';
import { GeofenceForm } from './geofence-form.js';
import { GeofenceStage } from './geofence-stage.js';

export function Geofences() {
  return (
    <div class="page full">
      <h1>{t('nav.data')}</h1>
      <DataTabs store="geofences" />
      {may('GET', '/geofences') ? <ListAndMap /> : <NotPermitted request="GET /geofences/*" />}
    </div>
  );
}

function ListAndMap() {
  const { error, reload } = useFetched(loadGeofences);
  const drawing = useDrawing();
  const asJson = useSignal<Geofence | 'new' | null>(null);
  const removed = useSignal<Geofence | null>(null);
  const { edited } = drawing;
  return (
    <>
      <div class="split">
        {edited.value === null ? (
          <GeofenceList
            error={error.value}
            onShow={drawing.showOnMap}
            onEdit={drawing.edit}
            onRemove={write(removed)}
            onJson={write(asJson)}
          />
        ) : (
          <GeofenceForm key={edited.value === 'new' ? 'new' : edited.value._id} drawing={drawing} onSaved={reload} />
        )}
        <GeofenceStage drawing={drawing} />
      </div>
      {asJson.value && (
        <EntityForm
          kind={kindOf('geofences', null)}
          entity={asJson.value === 'new' ? null : asJson.value}
          onDone={reload}
          onClose={() => write(asJson)(null)}
        />
      )}
      {removed.value && <Removal geofence={removed.value} onDone={reload} onClose={() => write(removed)(null)} />}
    </>
  );
}

interface ListProps {
  readonly error: unknown;
  /** Shows it on the map. */
  readonly onShow: (geofence: Geofence) => void;
  readonly onEdit: (geofence: Geofence | 'new') => void;
  readonly onRemove: (geofence: Geofence) => void;
  readonly onJson: (geofence: Geofence | 'new') => void;
}

function GeofenceList({ error, ...actions }: ListProps) {
  const all = geofences.value;
  const { onEdit, onJson } = actions;
  return (
    <Section
      title={t('data.geofences')}
      about={t('geofences.about')}
      action={
        may('POST', '/geofences') && (
          <div class="buttons">
            <button type="button" class="button" onClick={() => onJson('new')}>
              JSON
            </button>
            <button type="button" class="button primary" onClick={() => onEdit('new')}>
              <Icon name="plus" /> {t('geofences.draw')}
            </button>
          </div>
        )
      }
    >
      <Problem error={error} />
      {all === null && !error && <Skeleton rows={4} />}
      {all?.length === 0 && <Empty icon="polygon" title={t('geofences.none')} />}
      <ul class="items">
        {all?.map((geofence) => (
          <Item key={geofence._id} geofence={geofence} {...actions} />
        ))}
      </ul>
      {areGeofencesCut.value && <p class="hint">{t('entity.cut', { count: MAX_GEOFENCES })}</p>}
    </Section>
  );
}

function Item({ geofence, onShow, onEdit, onRemove, onJson }: Omit<ListProps, 'error'> & { geofence: Geofence }) {
  const path = `/geofences/${geofence._id}`;
  const name = nameOf(geofence);
  return (
    <li class="item">
      <span style={{ color: toColor(geofence.color) ?? undefined }}>
        <Icon name="polygon" />
      </span>
      <div class="item-text">
        <h3>
          <button type="button" class="link-button" onClick={() => onShow(geofence)}>
            {name}
          </button>
        </h3>
        <p class="quiet">{describe(geofence)}</p>
      </div>
      <div class="actions">
        {isOwn(geofence) && may('PATCH', path) && (
          <>
            <button type="button" class="button small" onClick={() => onEdit(geofence)}>
              {t('entity.edit')}
              <span class="visually-hidden"> {name}</span>
            </button>
            <button type="button" class="button small" onClick={() => onJson(geofence)}>
              JSON<span class="visually-hidden"> {name}</span>
            </button>
          </>
        )}
        {isOwn(geofence) && may('DELETE', path) && (
          <button
            type="button"
            class="icon-button"
            aria-label={t('entity.remove', { name })}
            onClick={() => onRemove(geofence)}
          >
            <Icon name="trash" size={16} />
          </button>
        )}
      </div>
    </li>
  );
}

const nameOf = ({ name, _id }: Geofence): string => name || _id;

function describe({ geometry, radius }: Geofence): string {
  if (geometry?.type === 'Point')
    return radius ? t('geofences.circle', { radius: formatDistance(radius) }) : t('geofences.point');
  if (geometry?.type === 'LineString') return t('geofences.line');
  return geometry ? t('geofences.area') : t('geofences.noShape');
}

const formatDistance = (metres: number): string =>
  metres < 1_000
    ? formatNumber(metres, { style: 'unit', unit: 'meter', maximumFractionDigits: 1 })
    : formatNumber(metres / 1_000, { style: 'unit', unit: 'kilometer', maximumFractionDigits: 1 });

interface RemovalProps {
  readonly geofence: Geofence;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Removal({ geofence, onDone, onClose }: RemovalProps) {
  return (
    <Confirm
      title={t('settings.removeTitle', { name: nameOf(geofence) })}
      text={t('entity.removeAbout')}
      action={t('action.remove')}
      onConfirm={async () => {
        await request('DELETE /api/v1/geofences/{id}', { path: { id: geofence._id } });
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
