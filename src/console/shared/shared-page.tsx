/** The page of a share link: one object, for people who have no account. */
import { useSignal } from '@preact/signals';
import { type ComponentProps, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { VigilError } from '../../client/client-error.js';
import { formatValue, type Model, oldTimeOf, toShown } from '../home/values.js';
import { Age } from '../parts/age.js';
import { FieldError } from '../parts/field-errors.js';
import { Field, Form, useWork } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { Values } from '../parts/values.js';
import { Logo } from '../shell/logo.js';
import { Message } from '../shell/message.js';
import type { Json } from '../state/api.js';
import { nowMs, serverNowMs, startClock } from '../state/clock.js';
import { loadPart } from '../state/parts.js';
import { isPlaceField, placeIn } from '../state/places.js';
import { write } from '../state/write.js';
import { formatDateTime, formatMoment, loadTexts, prepareNumbers, type TextLoader, t } from '../text/language.js';
import type { PastChart } from './past-chart.js';
import { PlaceMap } from './place-map.js';
import { useTrail } from './trail.js';
import { enterPin, followLink, lostSinceMs, phase, type SharedView, view } from './view.js';

const LINKS_TEXTS: TextLoader = {
  en: () => import('../text/english-links.js'),
  de: () => import('../text/german-links.js'),
};

/** The secret is behind the `#` of the address, which browsers send to nobody. */
export async function show(element: HTMLElement): Promise<void> {
  const secret = location.hash.slice(1);
  addEventListener('hashchange', () => location.reload());
  startClock(() => undefined);
  void followLink(secret);
  await Promise.all([loadTexts(LINKS_TEXTS), loadTexts('pages')]);
  render(<SharedPage secret={secret} />, element);
  prepareNumbers();
}

function SharedPage({ secret }: { secret: string }) {
  const shown = view.value;
  const isOver = phase.value === 'ended' || (shown !== null && shown.expiresAtMs <= nowMs.value);
  const title = isOver || shown === null ? 'Vigil' : shown.name;
  useEffect(() => {
    document.title = title;
  }, [title]);
  if (isOver) return <Message text={t('shared.ended')} />;
  if (phase.value === 'pin') return <Pin secret={secret} />;
  return (
    <main class="page shared" id="main">
      {lostSinceMs.value !== null && (
        <p class="hint warn" role="alert">
          {t('shared.lost', { moment: formatMoment(lostSinceMs.value, serverNowMs()) })}
        </p>
      )}
      {shown === null ? <Skeleton rows={4} /> : <SharedObject shown={shown} />}
    </main>
  );
}

function Pin({ secret }: { secret: string }) {
  const pin = useSignal('');
  const work = useWork();
  const submit = async (): Promise<void> => {
    try {
      await enterPin(secret, pin.value.trim());
    } catch (error) {
      if (!(error instanceof VigilError) || error.status !== 401) throw error;
      throw new FieldError('pin', t('shared.wrongPin'));
    }
  };
  return (
    <main class="login">
      <div class="login-card">
        <Logo size={44} />
        <h1>{t('shared.enterPin')}</h1>
        <Form work={work} submit={t('card.open')} onSubmit={submit}>
          <Field
            name="pin"
            label={t('shared.pin')}
            value={pin.value}
            onInput={write(pin)}
            type="password"
            autocomplete="off"
            required
            autofocus
          />
        </Form>
      </div>
    </main>
  );
}

function SharedObject({ shown }: { shown: SharedView }) {
  const { name, object, values, parameters, history, expiresAtMs } = shown;
  const place = placeIn(values);
  const trail = useTrail(shown, place);
  const model = toModel(parameters);
  const newestMs = Math.max(...[...values.values()].map(({ timeMs }) => timeMs));
  const { name: objectName, status, ...fields } = object;
  return (
    <>
      <header class="object-head">
        <div>
          <h1>{name}</h1>
          <p class="quiet">
            {objectName !== undefined && objectName !== name && <span>{formatValue(objectName)}</span>}
            {values.size > 0 && (
              <span>
                {t('object.lastPacket')} <Age ms={newestMs} />
              </span>
            )}
            {status ? <span class="tag">{formatValue(status)}</span> : null}
          </p>
        </div>
      </header>
      {values.size === 0 && <p class="hint">{t('card.noPacket')}</p>}
      {place && <PlaceMap place={place} trail={trail} />}
      <Values
        values={[...toFields(fields), ...toValues(values, model, newestMs)]}
        position={place}
        positionMs={oldTimeOf(place?.timeMs, newestMs)}
        isLarge
      />
      {history !== 'none' && <Past shown={shown} model={model} />}
      <p class="quiet">{t('shared.until', { time: formatDateTime(expiresAtMs) })}</p>
    </>
  );
}

/** The chart of links with history, which is loaded for them alone. */
function Past(props: ComponentProps<typeof PastChart>) {
  const part = useSignal<typeof PastChart | null>(null);
  useEffect(() => {
    void loadPart(() => import('./past-chart.js')).then((loaded) => {
      part.value = loaded.PastChart;
    });
  }, []);
  const Loaded = part.value;
  return Loaded ? <Loaded {...props} /> : null;
}

/** As far as visitors see it. */
function toModel(parameters: SharedView['parameters']): Model {
  const known = parameters.map(({ name, unit, ...meaning }) => ({
    ...meaning,
    name: name ?? '',
    ...(unit !== null && { unit }),
  }));
  return { name: '', _arguments: known };
}

/** Every value but the place, with its name, unit, and its time where it is older than the newest one. */
function toValues(values: SharedView['values'], model: Model, newestMs: number) {
  return [...values]
    .filter(([id, { value }]) => !isPlaceField(id, value))
    .flatMap(([id, { value, timeMs }]) =>
      membersOf(id, value).map(([path, member]) => ({
        ...toShown(path, member, model),
        timeMs: oldTimeOf(timeMs, newestMs),
      })),
    );
}

const toFields = (fields: Json) =>
  Object.entries(fields)
    .flatMap(([name, value]) => membersOf(name, value))
    .map(([path, value]) => ({ name: `field ${path}`, label: path, text: formatValue(value), unit: '' }));

/** What is within others, by its path. */
function membersOf(path: string, value: unknown): [path: string, value: unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]];
  return Object.entries(value).flatMap(([name, member]) => membersOf(`${path}.${name}`, member));
}
