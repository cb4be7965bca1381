/** A source: the address for its sender with the key, whether packets arrive, unknown devices to add, and what was refused. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { encode } from 'uqr';
import { Confirm } from '../parts/confirm.js';
import { CopyBox } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Problem, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { type Entity, list, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { toAddress } from '../state/location.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, t } from '../text/language.js';
import { labelOf } from './kinds.js';
import { toSetupLink } from './source-link.js';

const LOOK_MS = 3_000;
const SHOWN_REFUSED = 10;

interface Refused {
  readonly time: number;
  readonly device: string | null;
  readonly reason: string;
  readonly payload: string;
}

interface SourceProps {
  readonly source: Entity;
  readonly onClose: () => void;
  readonly onChange: () => Promise<void>;
}

export function SourceDialog({ source, onClose, onChange }: SourceProps) {
  const key = useSignal(typeof source.key === 'string' ? source.key : null);
  const { data, error, reload } = useFetched(async () => {
    const [present] = await list<Entity>('/sources', { 'where.id': JSON.stringify(source.id), limit: 1 });
    const path = `/sources/${source._id}/refused`;
    return { present, refused: may('GET', path) ? (await list<Refused>(path)).toReversed() : [] };
  }, [source._id]);
  useEffect(() => {
    const timer = setInterval(() => void reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [source._id]);
  return (
    <Dialog title={labelOf(source)} onClose={onClose} size="medium">
      <div class="form">
        <Address source={source} shown={key} />
        <Problem error={error.value} />
        {data.value && <Arrival before={source.lastUsed} now={data.value.present?.lastUsed} />}
        {data.value && <Unknown source={source} refused={data.value.refused} onChange={onChange} />}
        {data.value && <RefusedList refused={data.value.refused.slice(0, SHOWN_REFUSED)} />}
      </div>
    </Dialog>
  );
}

/** The finished address with its QR code, while the key is known. */
function Address({ source, shown }: { source: Entity; shown: Signal<string | null> }) {
  const isAsked = useSignal(false);
  const path = `/sources/${source._id}/key`;
  const id = encodeURIComponent(String(source.id));
  const address = `${location.origin}${toAddress(`/api/v1/in/${id}`)}`;
  const renew = async (): Promise<void> => {
    shown.value = (await request('POST /api/v1/sources/{id}/key', { path: { id: source._id }, body: {} })).key;
  };
  return (
    <div aria-live="polite">
      {shown.value === null ? (
        <p class="hint">{t('source.keyHidden')}</p>
      ) : (
        <>
          <p class="hint warn">{t('source.once')}</p>
          <CopyBox text={`${address}/${shown.value}`} label={t('source.address')} />
          <Code text={toSetupLink(String(source.kind), address, shown.value)} />
        </>
      )}
      {shown.value === null && may('POST', path) && (
        <button type="button" class="button" onClick={() => write(isAsked)(true)}>
          {t('source.newKey')}
        </button>
      )}
      {isAsked.value && (
        <Confirm
          title={t('source.newKey')}
          text={t('source.newKeyAbout')}
          action={t('webhook.renew')}
          onConfirm={renew}
          onClose={() => write(isAsked)(false)}
        />
      )}
    </div>
  );
}

function Code({ text }: { text: string }) {
  const { size, path } = useMemo(() => {
    const { size, data } = encode(text, { border: 4 });
    const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
    return { size, path: dark.join('') };
  }, [text]);
  return (
    <svg class="qr" role="img" aria-label={t('source.code')} viewBox={`0 0 ${size} ${size}`} width="220" height="220">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

/** Whether packets arrive: the first one since the dialog was opened, or when the last one did. */
function Arrival({ before, now }: { before: unknown; now: unknown }) {
  if (typeof now !== 'number') return <p class="hint">{t('source.waiting')}</p>;
  return (
    <p class="hint">
      {before === undefined ? t('source.first') : t('source.lastUsed', { moment: formatDateTime(now) })}
    </p>
  );
}

/** Devices that no object has, each to be added with one click. */
function Unknown({ source, refused, onChange }: Omit<SourceProps, 'onClose'> & { refused: readonly Refused[] }) {
  const added = useSignal<readonly string[]>([]);
  const work = useWork();
  const named = refused.flatMap(({ device, reason }) =>
    device !== null && reason === 'unknown device' ? [device] : [],
  );
  const devices = [...new Set(named)].filter((device) => !added.value.includes(device));
  if (devices.length === 0 || !may('POST', '/objects')) return null;
  const add = async (id: string): Promise<void> => {
    const body = { id, name: id, model: String(source.model), group: String(source.group) };
    await request('POST /api/v1/objects', { body });
    added.value = [...added.value, id];
    notify(t('source.added', { id }));
    await onChange();
  };
  return (
    <section>
      <h3>{t('source.unknown')}</h3>
      <Problem error={work.error.value} />
      <div class="buttons">
        {devices.map((device) => (
          <button key={device} type="button" class="button small" onClick={() => void work.run(() => add(device))}>
            {t('source.add', { id: device })}
          </button>
        ))}
      </div>
    </section>
  );
}

function RefusedList({ refused }: { refused: readonly Refused[] }) {
  if (refused.length === 0) return null;
  return (
    <section>
      <h3>{t('source.refused')}</h3>
      <ul class="items">
        {refused.map(({ time, reason, payload }, index) => (
          <li key={`${time} ${index}`}>
            <details>
              <summary>
                {formatDateTime(time)}: {reason}
              </summary>
              <pre class="answer">{payload}</pre>
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}
