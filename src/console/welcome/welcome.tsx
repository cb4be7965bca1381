/** Adds an object and connects its device: from nothing to a point on the map. */

import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { deviceScopes } from '../account/token-scopes.js';
import { OFFLINE_AFTER, OfflineAfterField } from '../objects/offline-after.js';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { request } from '../state/api.js';
import {
  addObject,
  type FleetObject,
  loading,
  objectRevision,
  objects,
  onPacket,
  type Packet,
  parametersOf,
  stateRevision,
} from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { groupsBelow, type Named, namedOf, titleOf } from '../state/references.js';
import { may, user } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, formatTime, t } from '../text/language.js';
import { driving, startDrive, stopDrive } from './drive.js';
import { Snippets } from './snippets.js';

interface Made {
  readonly object: FleetObject;
  readonly token: string;
  readonly expiresAt: number;
}

const TOKEN_DAYS = 365;
const DAY_MS = 86_400_000;

export function Welcome() {
  const made = useSignal<Made | null>(null);
  objectRevision.value;
  const others = objects.size - (made.value ? 1 : 0);
  if (!may('POST', '/objects')) return <Empty icon="shield" title={t('welcome.notPermitted')} />;
  return (
    <div class="page narrow">
      <Running madeId={made.value?.object._id} />
      <h1>{t(loading.value === 'complete' && others === 0 ? 'welcome.first' : 'welcome.title')}</h1>
      <ol class="steps">
        <li>{made.value ? <Done name={made.value.object.name} /> : <NewObject onMade={write(made)} />}</li>
        <li>{made.value ? <Connect made={made.value} /> : <h2 class="quiet">{t('welcome.connect')}</h2>}</li>
        <li>{made.value ? <FirstPacket object={made.value.object} /> : <h2 class="quiet">{t('welcome.see')}</h2>}</li>
      </ol>
    </div>
  );
}

/** A drive that was started before this page was opened goes on: this page says so. */
function Running({ madeId }: { madeId: string | undefined }) {
  const objectId = driving.value?.objectId;
  if (objectId === undefined || objectId === madeId) return null;
  return (
    <p class="simulate" role="status">
      <button type="button" class="button" onClick={stopDrive}>
        <Icon name="pause" /> {t('welcome.stop')}
      </button>
      <span>{t('welcome.running', { name: objects.get(objectId)?.name ?? objectId })}</span>
    </p>
  );
}

/** The groups that a new object can belong to: the user's own group, and those below it. The own group is the first. */
function ownGroups(): Named[] {
  const own = user.value?.group ?? '';
  const all = namedOf('groups');
  const below = groupsBelow(own, all);
  const possible = all.filter(({ _id }) => below.has(_id));
  return possible.sort((one, other) => Number(other._id === own) - Number(one._id === own));
}

/** An id that is still free, as far as is known here. */
function proposeId(): string {
  const taken = new Set([...objects.values()].map(({ id }) => id));
  let number = objects.size + 1;
  while (taken.has(`device-${number}`)) number++;
  return `device-${number}`;
}

function NewObject({ onMade }: { onMade: (made: Made) => void }) {
  const id = useSignal(proposeId());
  const name = useSignal('');
  const offlineAfter = useSignal(OFFLINE_AFTER);
  const groups = ownGroups();
  const group = useSignal<string | null>(null);
  const work = useWork();
  // Objects may arrive after the page; what was typed stays.
  const proposed = useRef(id.value);
  useEffect(() => {
    if (id.value === proposed.current) id.value = proposed.current = proposeId();
  }, [loading.value]);
  const create = async (): Promise<void> => {
    const config = offlineAfter.value.trim() === '' ? {} : { config: { offlineAfter: offlineAfter.value.trim() } };
    const wanted = { id: id.value.trim(), name: name.value.trim() || id.value.trim(), ...config };
    const inGroup = group.value === null ? wanted : { ...wanted, group: group.value };
    const object = (await request('POST /api/v1/objects', { body: inGroup })) as FleetObject;
    addObject(object);
    const scopes = deviceScopes([object.id, object._id]);
    const expiresIn = TOKEN_DAYS * DAY_MS;
    const { token, expiresAt } = await request('POST /api/v1/account/tokens', {
      body: { name: object.name, scopes, expiresIn },
    });
    onMade({ object, token, expiresAt });
  };
  return (
    <Section title={t('welcome.create')} about={t('welcome.createAbout')}>
      <Form work={work} submit={t('welcome.createAction')} onSubmit={create}>
        <Field name="name" label={t('welcome.name')} value={name.value} autofocus onInput={write(name)} />
        <Field
          name="id"
          label={t('welcome.id')}
          hint={t('welcome.idHint')}
          value={id.value}
          required
          onInput={write(id)}
        />
        <OfflineAfterField value={offlineAfter.value} onInput={write(offlineAfter)} />
        {groups.length > 1 && (
          <Select
            label={t('entity.group')}
            value={group.value ?? groups[0]?._id ?? ''}
            options={groups.map((one) => [one._id, titleOf(one)])}
            onChange={write(group)}
          />
        )}
      </Form>
    </Section>
  );
}

function Done({ name }: { name: string }) {
  return (
    <p class="done">
      <Icon name="check" /> {t('welcome.created', { name })}
    </p>
  );
}

function Connect({ made: { object, token, expiresAt } }: { made: Made }) {
  const work = useWork();
  const isDriving = driving.value?.objectId === object._id;
  return (
    <Section title={t('welcome.connect')} about={t('welcome.connectAbout')}>
      <p class="simulate">
        <button
          type="button"
          class="button primary"
          aria-busy={work.isBusy.value}
          onClick={() => (isDriving ? stopDrive() : void work.run(() => startDrive(object._id)))}
        >
          <Icon name={isDriving ? 'pause' : 'play'} /> {t(isDriving ? 'welcome.stop' : 'welcome.simulate')}
        </button>
        <span class="quiet">{t('welcome.simulateAbout')}</span>
      </p>
      <Problem error={work.error.value} />
      <p class="hint warn">
        {t('tokens.once')} ({t('tokens.until', { time: formatDateTime(expiresAt) })})
      </p>
      <Snippets id={object.id} token={token} />
    </Section>
  );
}

const SHOWN_VALUES = 5;

/** The first packet with a parameter; null until it has come. */
function useFirstPacket(object: FleetObject): Signal<Packet | null> {
  const packet = useSignal<Packet | null>(null);
  useEffect(
    () =>
      onPacket((received) => {
        if (received._oid === object._id && parametersOf(received).length > 0) packet.value = received;
      }),
    [object._id],
  );
  // Its event may be lost: then the object is loaded with its state.
  const { state } = objects.get(object._id) ?? object;
  useEffect(() => {
    if (packet.value === null && state !== undefined && parametersOf(state).length > 0) packet.value = state;
  }, [stateRevision.value]);
  return packet;
}

/** Waits for the first packet, and shows it as soon as it comes. */
function FirstPacket({ object }: { object: FleetObject }) {
  const packet = useFirstPacket(object);
  const element = useRef<HTMLDivElement>(null);
  const hasPacket = packet.value !== null;
  useEffect(() => {
    if (hasPacket) element.current?.scrollIntoView({ block: 'nearest' });
  }, [hasPacket]);
  if (packet.value === null) {
    return (
      <Section title={t('welcome.see')}>
        <p class="waiting" role="status">
          <span class="dot" /> {t('welcome.waiting')}
        </p>
      </Section>
    );
  }
  return (
    <div ref={element}>
      <Section title={t('welcome.arrived')}>
        <p role="status">
          {formatTime(packet.value.time)} ·{' '}
          <code>
            {parametersOf(packet.value)
              .slice(0, SHOWN_VALUES)
              .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
              .join(', ')}
          </code>
        </p>
        <div class="form-actions">
          <a class="button" href={toAddress(`/objects/${object._id}/live`)}>
            {t('card.open')}
          </a>
          <a class="button primary" href={toAddress(`/?object=${object._id}`)}>
            {t('welcome.map')}
          </a>
        </div>
      </Section>
    </div>
  );
}
