/** The settings of the installation: which map the console shows. */
import { useSignal } from '@preact/signals';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { write } from '../state/write.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { changeMap, type MapChoice, type Settings } from './change-map.js';

const KINDS: readonly MapChoice['kind'][] = ['openfreemap', 'style', 'tiles', 'none'];

const SETTINGS_TEXTS: TextLoader = {
  en: () => import('../text/english-settings.js'),
  de: () => import('../text/german-settings.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(SETTINGS_TEXTS);

export function SettingsPage() {
  const { data, error } = useFetched(() => request('GET /api/v1/settings', {}));
  if (error.value) return <Problem error={error.value} />;
  return data.value === null ? <Skeleton rows={3} /> : <MapSetting settings={data.value} />;
}

function MapSetting({ settings: { map, mapInUse } }: { settings: Settings }) {
  const kind = useSignal<MapChoice['kind']>(map?.kind ?? 'none');
  const url = useSignal(map !== null && 'url' in map ? map.url : '');
  const origins = useSignal(((map !== null && 'origins' in map && map.origins) || []).join(', '));
  const attribution = useSignal((map?.kind === 'tiles' && map.attribution) || '');
  const work = useWork();
  const toChoice = (): MapChoice => {
    const listed = origins.value.split(/[\s,]+/).filter(Boolean);
    const own = { url: url.value.trim(), ...(listed.length > 0 && { origins: listed }) };
    if (kind.value === 'style') return { kind: 'style', ...own };
    const said = attribution.value.trim();
    if (kind.value === 'tiles') return { kind: 'tiles', ...own, ...(said !== '' && { attribution: said }) };
    return { kind: kind.value };
  };
  const isOwn = kind.value === 'style' || kind.value === 'tiles';
  return (
    <Section title={t('mapChoice.title')} about={t('mapChoice.about')}>
      {mapInUse.from === 'environment' && (
        <p class="note">{t('mapChoice.environment', { names: mapInUse.variables.join(', ') })}</p>
      )}
      <Form work={work} submit={t('action.save')} onSubmit={() => changeMap(toChoice())}>
        <Select
          name="map.kind"
          label={t('mapChoice.kind')}
          hint={t(`mapChoice.${kind.value}About`)}
          value={kind.value}
          options={KINDS.map((one) => [one, t(`mapChoice.${one}`)])}
          onChange={(chosen) => write(kind)(chosen as MapChoice['kind'])}
        />
        {isOwn && (
          <>
            <Field
              name="map.url"
              label={t('mapChoice.url')}
              hint={kind.value === 'tiles' ? 'https://maps.example/{z}/{x}/{y}.png' : 'https://maps.example/style.json'}
              value={url.value}
              onInput={write(url)}
            />
            <Field
              name="map.origins"
              label={t('mapChoice.origins')}
              hint={t('mapChoice.originsAbout')}
              value={origins.value}
              onInput={write(origins)}
            />
          </>
        )}
        {kind.value === 'tiles' && (
          <Field
            name="map.attribution"
            label={t('mapChoice.attribution')}
            hint={t('mapChoice.attributionAbout')}
            value={attribution.value}
            onInput={write(attribution)}
          />
        )}
      </Form>
    </Section>
  );
}
