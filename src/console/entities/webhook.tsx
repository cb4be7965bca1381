/** A webhook: a test of its receiver, another secret, and the messages that it was sent. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { CopyBox } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Problem, Select, useWork } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { type Entity, list, request } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { type Fetched, useFetched } from '../state/fetched.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, formatNumber, t } from '../text/language.js';
import { labelOf } from './kinds.js';

interface Message extends Entity {
  readonly event: string;
  readonly state: 'pending' | 'delivered' | 'dead' | 'withheld';
  readonly time: number;
  readonly attempts: number;
  readonly status?: number | null;
  readonly error?: string | null;
  readonly next?: number;
}

interface Answer {
  readonly status: number | null;
  readonly error: string | null;
  readonly ms: number;
}

const SHOWN = 50;
/** While a message waits. */
const POLL_S = 3;
const STATES = ['pending', 'delivered', 'dead', 'withheld'] as const;
const MAY_BE_SENT = new Set<string>(['pending', 'dead']);

export function WebhookDialog({ handler, onClose }: { handler: Entity; onClose: () => void }) {
  const state = useSignal('');
  const messages = useFetched(
    () =>
      list<Message>(`/handlers/${handler._id}/deliveries`, {
        sortBy: '-_id',
        limit: SHOWN,
        where: state.value === '' ? undefined : { state: state.value },
      }),
    [state.value],
  );
  const askedS = useSignal(0);
  useEffect(() => {
    const second = Math.floor(nowMs.value / 1_000);
    const isWaiting = messages.data.value?.some((message) => message.state === 'pending') ?? false;
    if (!isWaiting || second - askedS.value < POLL_S) return;
    askedS.value = second;
    void messages.reload();
  }, [nowMs.value]);
  return (
    <Dialog title={labelOf(handler)} onClose={onClose} size="medium">
      <Receiver id={handler._id} onSent={messages.reload} />
      <Select
        label={t('webhook.messages')}
        value={state.value}
        options={[['', t('webhook.all')], ...STATES.map((one) => [one, t(`webhook.${one}`)] as const)]}
        onChange={write(state)}
      />
      <Messages id={handler._id} messages={messages} />
    </Dialog>
  );
}

/** What can be done with the receiver; nothing without a permission. */
function Receiver({ id, onSent }: { id: string; onSent: () => Promise<void> }) {
  const answer = useSignal<Answer | null>(null);
  const secret = useSignal<string | null>(null);
  const work = useWork();
  const test = async (): Promise<void> => {
    answer.value = null;
    answer.value = await request('POST /api/v1/handlers/{id}/test', { path: { id }, body: {} });
    void onSent();
  };
  const isAsked = useSignal(false);
  const renew = async (): Promise<void> => {
    secret.value = (await request('POST /api/v1/handlers/{id}/secret', { path: { id }, body: {} })).secret;
  };
  return (
    <div class="form" aria-live="polite">
      <div class="actions">
        {may('POST', `/handlers/${id}/test`) && (
          <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(test)}>
            {t('webhook.test')}
          </button>
        )}
        {may('POST', `/handlers/${id}/secret`) && secret.value === null && (
          <button type="button" class="button" onClick={() => write(isAsked)(true)}>
            {t('webhook.newSecret')}
          </button>
        )}
      </div>
      {isAsked.value && (
        <Confirm
          title={t('webhook.newSecret')}
          text={t('webhook.renewAbout')}
          action={t('webhook.renew')}
          onConfirm={renew}
          onClose={() => write(isAsked)(false)}
        />
      )}
      <Problem error={work.error.value} />
      {answer.value && (
        <p class={isAccepted(answer.value) ? 'hint' : 'hint warn'}>
          {t('webhook.tested', { answer: reasonOf(answer.value), ms: formatNumber(answer.value.ms) })}
        </p>
      )}
      {secret.value && (
        <>
          <p class="hint warn">{t('webhook.renewed')}</p>
          <CopyBox text={secret.value} label={t('webhook.secret')} />
        </>
      )}
    </div>
  );
}

const isAccepted = ({ status }: Answer): boolean => status !== null && status >= 200 && status < 300;

const reasonOf = ({ status, error }: Pick<Message, 'status' | 'error'>): string =>
  [status, error].filter((one) => one !== null && one !== undefined && one !== '').join(' · ');

function Messages({ id, messages: { data, error, reload } }: { id: string; messages: Fetched<Message[]> }) {
  const work = useWork();
  const retry = (deliveryID: string) =>
    work.run(async () => {
      await request('POST /api/v1/handlers/{id}/deliveries/{deliveryID}/retry', {
        path: { id, deliveryID },
        body: {},
      });
      await reload();
    });
  return (
    <>
      <Problem error={error.value ?? work.error.value} />
      {data.value === null && !error.value && <Skeleton rows={3} />}
      {data.value?.length === 0 && <p class="hint">{t('webhook.none')}</p>}
      <ul class="items">
        {data.value?.map((message) => (
          <li key={message._id} class="item">
            <div class="item-text">
              <p>
                <strong>{message.event}</strong>
                <Tag state={message.state} />
              </p>
              <small class="quiet">
                {formatDateTime(message.time)}
                {message.attempts > 0 && ` · ${t('webhook.attempts', { count: message.attempts })}`}
                {reasonOf(message) && ` · ${reasonOf(message)}`}
                {message.next !== undefined && message.state === 'pending' && (
                  <>
                    {` · ${t('webhook.next')} `}
                    <Age ms={message.next} />
                  </>
                )}
              </small>
            </div>
            {MAY_BE_SENT.has(message.state) && may('POST', `/handlers/${id}/deliveries/${message._id}/retry`) && (
              <button type="button" class="button small" onClick={() => void retry(message._id)}>
                {t('webhook.retry')}
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Tag({ state }: Pick<Message, 'state'>) {
  return <span class={state === 'dead' ? 'tag bad' : 'tag'}>{t(`webhook.${state}`)}</span>;
}

/** Shows the secret of a new webhook once. */
export function SecretDialog({ handler, onClose }: { handler: Entity; onClose: () => void }) {
  return (
    <Dialog title={labelOf(handler)} onClose={onClose} size="medium" canClose={false}>
      <div class="form">
        <p class="hint warn">{t('webhook.once')}</p>
        <CopyBox text={String(handler.secret)} label={t('webhook.secret')} />
        <div class="form-actions">
          <button type="button" class="button primary" onClick={onClose}>
            {t('webhook.kept')}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
