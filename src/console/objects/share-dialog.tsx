/** Creates, lists and revokes the share links of an object. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { CopyBox } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { type Routes, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import type { FleetObject } from '../state/fleet.js';
import { toAddress } from '../state/location.js';
import { PLACE_NAMES } from '../state/places.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, loadTexts, type TextLoader, t, tn } from '../text/language.js';

type Link = Routes['GET /api/v1/objects/{id}/links']['answer'][number];

const LIFETIMES: readonly (readonly [hours: number, unit: 'hour' | 'day', count: number])[] = [
  [1, 'hour', 1],
  [8, 'hour', 8],
  [24, 'day', 1],
  [7 * 24, 'day', 7],
  [30 * 24, 'day', 30],
];
const USUAL_HOURS = '24';
/** What a link shows that does not show values. */
const POSITION_FIELDS = [...PLACE_NAMES, 'name', 'status'];

const LINKS_TEXTS: TextLoader = {
  en: () => import('../text/english-links.js'),
  de: () => import('../text/german-links.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(LINKS_TEXTS);

export function ShareDialog({ object, onClose }: { object: FleetObject; onClose: () => void }) {
  const { data, error, reload } = useFetched(
    () => request('GET /api/v1/objects/{id}/links', { path: { id: object._id } }),
    [object._id],
  );
  const url = useSignal<string | null>(null);
  const revoked = useSignal<Link | null>(null);
  return (
    <Dialog title={t('links.title', { name: object.name })} onClose={onClose} size="medium">
      <p class="quiet">{t('links.about')}</p>
      {url.value === null ? (
        <NewLink
          object={object}
          onMade={(secret) => {
            url.value = `${location.origin}${toAddress('/s')}#${secret}`;
            void reload();
          }}
        />
      ) : (
        <Made url={url.value} />
      )}
      <Problem error={error.value} />
      {data.value && <LinkList links={data.value} onRevoke={write(revoked)} />}
      {revoked.value && (
        <Revoke objectId={object._id} link={revoked.value} onDone={reload} onClose={() => write(revoked)(null)} />
      )}
    </Dialog>
  );
}

/** Takes the focus from the form that it replaces. */
function Made({ url }: { url: string }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    element.current?.focus({ preventScroll: true });
    element.current?.closest('dialog')?.scrollTo(0, 0);
  }, []);
  return (
    <div ref={element} class="form" tabIndex={-1}>
      <p class="hint warn">{t('links.once')}</p>
      <CopyBox text={url} label={t('links.url')} />
    </div>
  );
}

function useLinkFields(object: FleetObject) {
  const name = useSignal(object.name);
  const hours = useSignal(USUAL_HOURS);
  const shows = useSignal('values');
  const history = useSignal<Link['history']>('none');
  const pin = useSignal('');
  const toBody = () => ({
    name: name.value.trim(),
    expiresIn: `${hours.value} h`,
    history: history.value,
    ...(shows.value === 'position' && { fields: POSITION_FIELDS }),
    ...(pin.value !== '' && { pin: pin.value }),
  });
  return { name, hours, shows, history, pin, toBody };
}

function NewLink({ object, onMade }: { object: FleetObject; onMade: (secret: string) => void }) {
  const { name, hours, shows, history, pin, toBody } = useLinkFields(object);
  const work = useWork();
  const submit = async (): Promise<void> =>
    onMade((await request('POST /api/v1/objects/{id}/links', { path: { id: object._id }, body: toBody() })).secret);
  return (
    <Form work={work} submit={t('links.create')} onSubmit={submit}>
      <Field
        name="name"
        label={t('links.name')}
        hint={t('links.nameHint')}
        value={name.value}
        required
        onInput={write(name)}
      />
      <Select
        name="expiresIn"
        label={t('links.lifetime')}
        value={hours.value}
        options={LIFETIMES.map(([of, unit, count]) => [String(of), tn(`unit.${unit}`, count)])}
        onChange={write(hours)}
      />
      <Select
        name="fields"
        label={t('links.shows')}
        value={shows.value}
        options={[
          ['values', t('links.values')],
          ['position', t('links.position')],
        ]}
        onChange={write(shows)}
      />
      <Select
        name="history"
        label={t('links.history')}
        value={history.value}
        options={[
          ['none', t('links.noHistory')],
          ['24 h', t('links.dayOfHistory')],
        ]}
        onChange={(chosen) => {
          history.value = chosen as Link['history'];
        }}
      />
      <Field
        name="pin"
        label={t('links.pin')}
        hint={t('links.pinHint')}
        value={pin.value}
        autocomplete="off"
        onInput={write(pin)}
      />
    </Form>
  );
}

function LinkList({ links, onRevoke }: { links: readonly Link[]; onRevoke: (link: Link) => void }) {
  if (links.length === 0) return <p class="quiet">{t('links.none')}</p>;
  return (
    <section>
      <h3>{t('links.list')}</h3>
      <ul class="items">
        {links.map((link) => (
          <li key={link._id} class="item">
            <div class="item-text">
              <h3>
                {link.name}
                {link.history !== 'none' && <span class="tag">{t('links.withHistory')}</span>}
                {link.hasPin && <span class="tag">{t('links.withPin')}</span>}
              </h3>
              <p class="quiet">
                {t('links.until', { time: formatDateTime(link.expiresAt) })} · {tn('links.views', link.views)}
                {link.lastViewed !== null && (
                  <>
                    , {t('links.lastViewed')} <Age ms={link.lastViewed} />
                  </>
                )}
              </p>
            </div>
            {may('DELETE', `/objects/${link.object}/links/${link._id}`) && (
              <button type="button" class="button small" onClick={() => onRevoke(link)}>
                {t('links.revoke')}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface RevokeProps {
  readonly objectId: string;
  readonly link: Link;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Revoke({ objectId, link, onDone, onClose }: RevokeProps) {
  return (
    <Confirm
      title={t('links.revokeTitle', { name: link.name })}
      text={t('links.revokeAbout')}
      action={t('links.revoke')}
      onConfirm={async () => {
        await request('DELETE /api/v1/objects/{id}/links/{linkID}', { path: { id: objectId, linkID: link._id } });
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
