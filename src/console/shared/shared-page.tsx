/** The page of a share link: one object, for people who have no account. */
import { useSignal } from '@preact/signals';
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { VigilError } from '../../client/client-error.js';
import { formatValue, oldTimeOf, toShown } from '../home/values.js';
import { Age } from '../parts/age.js';
import { FieldError } from '../parts/field-errors.js';
import { Field, Form, useWork } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { Values } from '../parts/values.js';
import { Logo } from '../shell/logo.js';
import type { Json } from '../state/api.js';
import { nowMs, serverNowMs, startClock } from '../state/clock.js';
import { isPlaceField, placeIn } from '../state/places.js';
import { write } from '../state/write.js';
import { formatDateTime, formatMoment, loadTexts, prepareNumbers, t } from '../text/language.js';
import { PlaceMap } from './place-map.js';
import { enterPin, followLink, lostSinceMs, phase, type SharedView, view } from './view.js';

/** The secret is behind the `#` of the address, which browsers send to nobody. */
export async function showSharedPage(element: HTMLElement): Promise<void> {
  const secret = location.hash.slice(1);
  addEventListener('hashchange', () => location.reload());
  startClock(() => undefined);
  void followLink(secret);
  await Promise.all([loadTexts('links'), loadTexts('pages')]);
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

const Message = ({ text }: { text: string }) => (
  <main class="login">
    <div class="login-card">
      <Logo size={44} />
      <h1>{text}</h1>
    </div>
  </main>
);

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

function SharedObject({ shown: { name, object, values, parameters, expiresAtMs } }: { shown: SharedView }) {
  const place = placeIn(values);
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
      {place && <PlaceMap place={place} />}
      <Values
        values={[...toFields(fields), ...toValues(values, parameters, newestMs)]}
        position={place}
        positionMs={oldTimeOf(place?.timeMs, newestMs)}
        isLarge
      />
      <p class="quiet">{t('shared.until', { time: formatDateTime(expiresAtMs) })}</p>
    </>
  );
}

/** Every value but the place, with its name, unit, and its time where it is older than the newest one. */
function toValues(values: SharedView['values'], parameters: SharedView['parameters'], newestMs: number) {
  const known = parameters.map(({ id, name, unit }) => ({ id, name: name ?? '', ...(unit !== null && { unit }) }));
  const model = { name: '', _arguments: known };
  return [...values]
    .filter(([id, { value }]) => !isPlaceField(id, value))
    .map(([id, { value, timeMs }]) => ({ ...toShown(id, value, model), timeMs: oldTimeOf(timeMs, newestMs) }));
}

/** Fields of the object, those within others by their paths. */
function toFields(fields: Json, before = ''): { name: string; label: string; text: string; unit: string }[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const path = before + name;
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return toFields(value as Json, `${path}.`);
    return [{ name: `field ${path}`, label: path, text: formatValue(value), unit: '' }];
  });
}
