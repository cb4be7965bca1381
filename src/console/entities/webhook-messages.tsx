/** The messages of a webhook: which wait, since when and why, and how to have them sent. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Age } from '../parts/age.js';
import { Problem, Select, useWork, useWorkOfEach } from '../parts/form.js';
import { notify, Skeleton } from '../parts/notices.js';
import { type Entity, list, request, VigilError } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { type Fetched, useFetched } from '../state/fetched.js';
import { objects } from '../state/fleet.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDateTime, formatMoment, t, tn } from '../text/language.js';

interface Message extends Entity {
  readonly event: string;
  readonly object: string;
  readonly state: 'pending' | 'delivered' | 'dead' | 'withheld';
  readonly time: number;
  readonly attempts: number;
  readonly last?: number;
  readonly status?: number | null;
  readonly error?: string | null;
  /** The beginning of the last answer. */
  readonly answer?: string;
  readonly next?: number;
}

interface Waiting {
  readonly count: number;
  readonly first: Message | null;
}

const PAGE = 50;
/** Messages come and go while the dialog is open. */
const POLL_S = 3;
/** Counting is dearer. */
const COUNT_S = 15;
/** One request sends one message. */
const MOST_SENT = 1_000;
const STATES = ['pending', 'delivered', 'dead', 'withheld'] as const;
const MAY_BE_SENT = new Set<string>(['pending', 'dead']);

interface WebhookMessagesProps {
  readonly handlerId: string;
  /** Changes when there may be another message. */
  readonly revision: Signal<number>;
}

export function WebhookMessages({ handlerId, revision }: WebhookMessagesProps) {
  const state = useSignal('');
  const order = useSignal('-_id');
  const limit = useSignal(PAGE);
  const path = `/handlers/${handlerId}/deliveries`;
  const messages = useFetched(async () => {
    const where = state.value === '' ? undefined : { state: state.value };
    // One more, to know whether there are more.
    const found = await list<Message>(path, { sortBy: order.value, limit: limit.value + 1, where });
    return { shown: found.slice(0, limit.value), hasMore: found.length > limit.value };
  }, [handlerId, state.value, order.value, limit.value, revision.value]);
  useEvery(POLL_S, messages.reload);
  const choose = (target: Signal<string>) => (value: string) => {
    target.value = value;
    limit.value = PAGE;
  };
  const { shown, hasMore = false } = messages.data.value ?? {};
  return (
    <>
      <Queue handlerId={handlerId} revision={revision} />
      <div class="row-fields">
        <Select
          label={t('webhook.messages')}
          value={state.value}
          options={[['', t('webhook.all')], ...STATES.map((one) => [one, t(`webhook.${one}`)] as const)]}
          onChange={choose(state)}
        />
        <Select
          label={t('webhook.order')}
          value={order.value}
          options={[
            ['-_id', t('webhook.newest')],
            ['_id', t('webhook.oldest')],
          ]}
          onChange={choose(order)}
        />
      </div>
      <Problem error={messages.error.value} />
      {shown === undefined && !messages.error.value && <Skeleton rows={3} />}
      {shown?.length === 0 && <p class="hint">{t('webhook.none')}</p>}
      <List handlerId={handlerId} shown={shown ?? []} reload={messages.reload} />
      {hasMore && (
        <button type="button" class="button small" onClick={() => write(limit)(limit.value + PAGE)}>
          {t('webhook.more')}
        </button>
      )}
    </>
  );
}

/** Does something again and again while the page is seen. */
function useEvery(seconds: number, work: () => Promise<void>): void {
  const doneS = useSignal(Math.floor(nowMs.peek() / 1_000));
  useEffect(() => {
    const second = Math.floor(nowMs.value / 1_000);
    if (second - doneS.peek() < seconds) return;
    doneS.value = second;
    void work();
  }, [nowMs.value]);
}

/** How many messages wait, since when, and why; all of them can be sent at once. */
function Queue({ handlerId, revision }: WebhookMessagesProps) {
  const path = { id: handlerId };
  const where = { state: 'pending' };
  const queue = useFetched(async () => {
    const [handler, waiting] = await Promise.all([
      request('GET /api/v1/{store}/{id}', { path: { store: 'handlers', id: handlerId } }),
      request('GET /api/v1/handlers/{id}/deliveries', { path, query: { where, meta: true } as never }),
    ]);
    return { handler: handler as Entity, waiting: waiting as unknown as Waiting };
  }, [handlerId, revision.value]);
  useEvery(COUNT_S, queue.reload);
  const work = useWork();
  const sendAll = async (): Promise<void> => {
    const query = { where, sortBy: '_id', limit: MOST_SENT, only: ['_id'] };
    const waiting = await list(`/handlers/${handlerId}/deliveries`, query);
    for (const { _id } of waiting) await retry(handlerId, _id);
    notify(tn('webhook.sending', waiting.length));
    revision.value++;
  };
  const found = queue.data.value;
  if (found === null) return <Problem error={queue.error.value} />;
  const { count } = found.waiting;
  return (
    <div class="form">
      <p class={isTrouble(found.handler, found.waiting) ? 'hint warn' : 'hint'} role="status">
        {tn('webhook.waiting', count)} <Reason handler={found.handler} waiting={found.waiting} />
      </p>
      <Problem error={work.error.value} />
      {count > 0 && found.handler.active !== false && may('POST', `/handlers/${handlerId}/deliveries/any/retry`) && (
        <div class="actions">
          <button type="button" class="button" aria-busy={work.isBusy.value} onClick={() => void work.run(sendAll)}>
            {t('webhook.sendAll')}
          </button>
        </div>
      )}
    </div>
  );
}

const isTrouble = (handler: Entity, { first }: Waiting): boolean =>
  handler.active === false || (first?.attempts ?? 0) > 0;

/** Why messages wait, as far as the oldest of them tells. */
function Reason({ handler, waiting: { first } }: { handler: Entity; waiting: Waiting }) {
  if (handler.active === false) {
    const changedMs = Number(handler._at ?? handler.time);
    return <>{t('webhook.paused', { moment: formatMoment(changedMs, nowMs.value) })}</>;
  }
  if (first === null) return null;
  const moment = formatMoment(first.time, nowMs.value);
  return <>{t(first.attempts > 0 ? 'webhook.failing' : 'webhook.oldestSince', { moment })}</>;
}

/** A message that was delivered meanwhile needs nothing. */
async function retry(id: string, deliveryID: string): Promise<void> {
  try {
    await request('POST /api/v1/handlers/{id}/deliveries/{deliveryID}/retry', { path: { id, deliveryID }, body: {} });
  } catch (error) {
    if (!(error instanceof VigilError) || (error.status !== 404 && error.status !== 409)) throw error;
  }
}

interface ListProps extends Pick<Fetched<unknown>, 'reload'> {
  readonly handlerId: string;
  readonly shown: readonly Message[];
}

function List({ handlerId, shown, reload }: ListProps) {
  const work = useWorkOfEach();
  const send = (id: string) =>
    work.run([id], async () => {
      await retry(handlerId, id);
      await reload();
    });
  return (
    <>
      <Problem error={work.error.value} />
      <ul class="items">
        {shown.map((message) => (
          <li key={message._id} class="item">
            <Content message={message} />
            {MAY_BE_SENT.has(message.state) &&
              may('POST', `/handlers/${handlerId}/deliveries/${message._id}/retry`) && (
                <button type="button" class="button small" onClick={() => void send(message._id)}>
                  {t('webhook.retry')}
                </button>
              )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Content({ message }: { message: Message }) {
  const reason = reasonOf(message);
  return (
    <div class="item-text">
      <p>
        <strong>{message.event}</strong> {objects.get(message.object)?.name ?? message.object}
        <span class={message.state === 'dead' ? 'tag bad' : 'tag'}>{t(`webhook.${message.state}`)}</span>
      </p>
      <small class="quiet">
        {formatDateTime(message.time)}
        {message.attempts > 0 && ` · ${t('webhook.attempts', { count: message.attempts })}`}
        {reason && ` · ${reason}`}
        {message.next !== undefined && message.state === 'pending' && (
          <>
            {` · ${t('webhook.next')} `}
            <Age ms={message.next} />
          </>
        )}
      </small>
      <AnswerText text={message.answer} />
    </div>
  );
}

/** What the receiver said, if it said anything. */
export function AnswerText({ text = '' }: { text?: string | undefined }) {
  if (text.trim() === '') return null;
  return (
    <details>
      <summary>{t('webhook.answer')}</summary>
      <pre class="answer">{text}</pre>
    </details>
  );
}

export const reasonOf = ({ status, error }: Pick<Message, 'status' | 'error'>): string =>
  [status, error].filter((one) => one !== null && one !== undefined && one !== '').join(' · ');
