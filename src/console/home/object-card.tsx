/** The selected object: its values now, and the ways to everything else about it. */

import { Age } from '../parts/age.js';
import { Icon } from '../parts/icon.js';
import { Labels } from '../parts/labels.js';
import { Values } from '../parts/values.js';
import { WrongClock } from '../parts/wrong-clock.js';
import { worstByObject } from '../state/alarms.js';
import { labelsOf } from '../state/by-name.js';
import { type FleetObject, objectRevision, objects, type Packet, parametersOf, stateRevision } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { isPlaceField, type Place, placeOf } from '../state/places.js';
import { presenceOf } from '../state/presence.js';
import { may } from '../state/session.js';
import { t } from '../text/language.js';
import { Where } from '../where/where.js';
import { useShow } from './address.js';
import { Mark } from './mark.js';
import { alarmText } from './sentence.js';
import { type Model, modelOf, oldTimeOf, type Shown, toShown } from './values.js';

const SHOWN_VALUES = 6;

export function ObjectCard({ id }: { id: string }) {
  objectRevision.value;
  stateRevision.value;
  const object = objects.get(id);
  if (object === undefined) return null;
  return (
    <aside class="card" aria-label={object.name}>
      <CardHead object={object} />
      <Worst id={id} />
      {object.state !== undefined && <Where key={id} object={object} />}
      <Labels labels={labelsOf(object)} />
      {object.state === undefined ? (
        <p class="card-empty quiet">{t('card.noPacket')}</p>
      ) : (
        <CardValues object={object} state={object.state} place={placeOf(object)} />
      )}
      <CardLinks path={`/objects/${object._id}`} />
    </aside>
  );
}

/** The worst open alarm, as a link to all about it. */
function Worst({ id }: { id: string }) {
  const worst = worstByObject.value.get(id);
  return worst === undefined ? null : (
    <a class={`card-alarm ${worst.severity}`} href={toAddress(`/alarms/${worst._id}`)}>
      <span class={`worst ${worst.severity}`} role="img" aria-label={t(`severity.${worst.severity}`)} />
      {alarmText(worst)}
    </a>
  );
}

function CardHead({ object }: { object: FleetObject }) {
  // The object stays the same when its state changes: nothing else would draw this again.
  stateRevision.value;
  const show = useShow();
  const { name, state } = object;
  return (
    <header class="card-head">
      <div>
        <h2>{name}</h2>
        <p class="quiet">
          <Mark object={object} />
          {t(`state.${presenceOf(object)}`)}
          {state && (
            <>
              <span>·</span>
              <Age ms={state.time} />
            </>
          )}
          <WrongClock object={object} />
        </p>
      </div>
      <button type="button" class="icon-button" aria-label={t('action.close')} onClick={() => show({ object: null })}>
        <Icon name="close" />
      </button>
    </header>
  );
}

/** Every value of a packet but its place, which is shown as one. */
function valuesOf(packet: Packet, model: Model | undefined): Shown[] {
  return parametersOf(packet)
    .filter(([name, value]) => !isPlaceField(name, value))
    .map(([name, value]) => toShown(name, value, model));
}

interface CardValuesProps {
  readonly object: FleetObject;
  readonly state: Packet;
  readonly place: Place | null;
}

function CardValues({ object, state, place }: CardValuesProps) {
  const values = valuesOf(state, modelOf(object._id, object.model)).slice(0, SHOWN_VALUES);
  return <Values values={values} position={place} positionMs={oldTimeOf(place?.timeMs, state.time)} />;
}

function CardLinks({ path }: { path: string }) {
  return (
    <footer class="card-links">
      <a class="button primary" href={toAddress(`${path}/live`)}>
        {t('card.open')}
      </a>
      <a class="button" href={toAddress(`${path}/history`)}>
        {t('tab.history')}
      </a>
      {may('POST', `${path}/commands/any`) && (
        <a class="button" href={toAddress(`${path}/commands`)}>
          {t('tab.commands')}
        </a>
      )}
    </footer>
  );
}
