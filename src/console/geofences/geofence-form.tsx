/** The form of a geofence beside the map on which it is drawn. */
import { useSignal } from '@preact/signals';
import type { DrawMode } from '../map/draw.js';
import { Field, Form, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { write } from '../state/write.js';
import { type TextKey, t } from '../text/language.js';
import type { Drawing } from './drawing.js';

const MODES: readonly (readonly [DrawMode, TextKey])[] = [
  ['polygon', 'geofences.area'],
  ['circle', 'geofences.circleMode'],
  ['linestring', 'geofences.line'],
];
const HINTS: Readonly<Record<DrawMode, TextKey>> = {
  polygon: 'geofences.areaHint',
  circle: 'geofences.circleHint',
  linestring: 'geofences.lineHint',
};

interface FormProps {
  readonly drawing: Drawing;
  readonly onSaved: () => Promise<void>;
}

export function GeofenceForm({ drawing, onSaved }: FormProps) {
  const { edited, shape, isChanged } = drawing;
  const geofence = edited.value === 'new' ? null : edited.value;
  const name = useSignal(geofence?.name ?? '');
  const work = useWork();
  const save = async (): Promise<void> => {
    if (shape.value === undefined && geofence === null) throw new Error(t('geofences.drawFirst'));
    // A former radius must not turn a point into a circle again.
    const drawn = isChanged.value && shape.value ? { radius: null, ...shape.value } : {};
    const path = { store: 'geofences', id: geofence?._id ?? '' };
    if (geofence === null) await request('POST /api/v1/{store}', { path, body: { name: name.value, ...shape.value } });
    else await request('PATCH /api/v1/{store}/{id}', { path, body: { name: name.value, ...drawn } });
    notify(t('profile.saved'));
    drawing.stop();
    await onSaved();
  };
  return (
    <Section title={t(geofence === null ? 'geofences.draw' : 'entity.edit')}>
      <Modes drawing={drawing} />
      <Form work={work} submit={t('action.save')} onSubmit={save} onCancel={drawing.stop}>
        <Field name="name" label={t('entity.name')} value={name.value} required onInput={write(name)} />
        {shape.value?.radius !== undefined && <Radius drawing={drawing} />}
      </Form>
    </Section>
  );
}

function Modes({ drawing: { mode, shape, begin } }: { drawing: Drawing }) {
  const isOf = (one: DrawMode): boolean => mode.value === one;
  return (
    <>
      <fieldset class="chips" aria-label={t('geofences.shape')}>
        {MODES.map(([one, text]) => (
          <button key={one} type="button" class="chip" aria-pressed={isOf(one)} onClick={() => begin(one)}>
            {t(text)}
          </button>
        ))}
      </fieldset>
      <p class="hint" role="status">
        {mode.value ? t(HINTS[mode.value]) : t(shape.value ? 'geofences.changeHint' : 'geofences.drawFirst')}
      </p>
    </>
  );
}

function Radius({ drawing: { shape, setShape } }: { drawing: Drawing }) {
  const change = (text: string): void => {
    const radius = Number(text);
    if (shape.value && Number.isFinite(radius) && radius > 0) setShape({ ...shape.value, radius });
  };
  return (
    <Field
      name="radius"
      label={t('geofences.radius')}
      type="number"
      value={String(shape.value?.radius ?? '')}
      onInput={change}
    />
  );
}
