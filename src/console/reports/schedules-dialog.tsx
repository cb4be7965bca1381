/** Sends reports by mail on a schedule: makes one of the report that is shown, and lists those that there are. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Confirm } from '../parts/confirm.js';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, Problem, Select, useWork } from '../parts/form.js';
import { notify, Skeleton } from '../parts/notices.js';
import { type Entity, list, request } from '../state/api.js';
import { serverNowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import { toAddress } from '../state/location.js';
import { namedOf, nameOf, titleOf } from '../state/references.js';
import { may, user } from '../state/session.js';
import { write } from '../state/write.js';
import { formatDate, language, loadTexts, type TextLoader, t, tn } from '../text/language.js';
import type { Asked, Query } from './asked.js';
import { FREQUENCIES, fieldsOf, INTERVALS, type ScheduleFields, toSchedule } from './schedule-fields.js';

interface LastRun {
  readonly time: number;
  readonly status: 'sending' | 'sent' | 'failed';
  readonly mails: number;
  readonly error: string | null;
}

interface Schedule extends Entity {
  readonly name: string;
  readonly report: Asked['kind'];
  readonly active: boolean;
  readonly due: number | null;
  readonly asked: number | null;
  readonly lastRun: LastRun | null;
}

const SCHEDULES_TEXTS: TextLoader = {
  en: () => import('../text/english-schedules.js'),
  de: () => import('../text/german-schedules.js'),
};

/** How soon the schedules are read again while one is being sent. */
const AGAIN_MS = 2_000;
const isUnderWay = ({ due, asked, lastRun }: Schedule): boolean =>
  lastRun?.status === 'sending' || asked !== null || (due !== null && due <= serverNowMs());

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(SCHEDULES_TEXTS);

const loadSchedules = (): Promise<Schedule[]> => list<Schedule>('/schedules', { sortBy: 'name' });

interface DialogProps {
  readonly query: Query;
  readonly asked: Asked;
  readonly onClose: () => void;
}

export function SchedulesDialog({ query, asked, onClose }: DialogProps) {
  const { data, error, reload } = useFetched(loadSchedules);
  const account = useFetched(() => request('GET /api/v1/account', {}));
  const removed = useSignal<Schedule | null>(null);
  useEffect(() => {
    if (!data.value?.some(isUnderWay)) return;
    const timer = setTimeout(() => void reload(), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [data.value]);
  const { channels = null, channelKinds = [] } = account.data.value ?? {};
  return (
    <Dialog title={t('schedules.title')} onClose={onClose} size="medium">
      <Problem error={account.error.value} />
      {channels !== null && !channelKinds.includes('email') && <p class="hint warn">{t('schedules.noMail')}</p>}
      {channels !== null && channelKinds.includes('email') && may('POST', '/schedules') && (
        <NewSchedule
          query={query}
          asked={asked}
          isReachable={channels.some((one) => 'email' in one && one.confirmed)}
          onMade={reload}
        />
      )}
      <Problem error={error.value} />
      {data.value === null && !error.value && <Skeleton rows={2} />}
      {data.value && <ScheduleList schedules={data.value} onChange={reload} onRemove={write(removed)} />}
      {removed.value && <Remove schedule={removed.value} onDone={reload} onClose={() => write(removed)(null)} />}
    </Dialog>
  );
}

interface NewProps {
  readonly query: Query;
  readonly asked: Asked;
  /** Whether the user has a mail address that is confirmed. */
  readonly isReachable: boolean;
  readonly onMade: () => Promise<void>;
}

/** `Mileage, Vans`. */
const titleOfReport = ({ kind }: Asked, { group, objects }: Query): string =>
  [t(`reports.${kind}.title`), group ? nameOf('groups', group) : (objects ?? '')]
    .filter((one) => one !== '')
    .join(', ');

function NewSchedule({ query, asked, isReachable, onMade }: NewProps) {
  const fields = useSignal(fieldsOf(asked, titleOfReport(asked, query)));
  const work = useWork();
  const { name, to } = fields.value;
  const change = (changed: Partial<ScheduleFields>): void => {
    fields.value = { ...fields.value, ...changed };
  };
  const save = async (): Promise<void> => {
    const context = { kind: asked.kind, query, me: user.value?._id ?? '', tz: zone(), language: language.value };
    await request('POST /api/v1/schedules', { body: toSchedule(fields.value, context) });
    notify(t('schedules.saved', { name: name.trim() }));
    await onMade();
  };
  return (
    <Form work={work} submit={t('schedules.create')} onSubmit={save}>
      <Field
        name="name"
        label={t('schedules.name')}
        value={name}
        required
        onInput={(value) => change({ name: value })}
      />
      <When fields={fields.value} onChange={change} />
      <Select
        name="to"
        label={t('schedules.to')}
        hint={t('schedules.toHint')}
        value={to}
        options={recipients()}
        onChange={(value) => change({ to: value })}
      />
      {to === 'me' && !isReachable && (
        <p class="hint warn">
          {t('schedules.unreachable')} <a href={toAddress('/account/channels')}>{t('account.channels')}</a>
        </p>
      )}
    </Form>
  );
}

interface WhenProps {
  readonly fields: ScheduleFields;
  readonly onChange: (changed: Partial<ScheduleFields>) => void;
}

/** The interval of the report, and when it is sent. */
function When({ fields: { interval, hours, frequency, time }, onChange }: WhenProps) {
  const hour = (end: 'from' | 'to') => (
    <Field
      name={`hours.${end}`}
      label={t(end === 'from' ? 'schedules.from' : 'schedules.till')}
      type="time"
      value={hours[end]}
      required
      onInput={(value) => onChange({ hours: { ...hours, [end]: value } })}
    />
  );
  return (
    <>
      <div class="schedule-fields">
        <Select
          name="interval"
          label={t('reports.interval')}
          value={interval}
          options={INTERVALS.map((one) => [one, t(`schedules.interval.${toKey(one)}`)])}
          onChange={(value) => onChange({ interval: value as typeof interval })}
        />
        {interval === 'last shift' && hour('from')}
        {interval === 'last shift' && hour('to')}
      </div>
      <div class="schedule-fields">
        <Select
          name="cron"
          label={t('schedules.when')}
          value={frequency}
          options={FREQUENCIES.map((one) => [one, t(`schedules.on.${one}`)])}
          onChange={(value) => onChange({ frequency: value as typeof frequency })}
        />
        <Field
          label={t('schedules.at')}
          hint={zone()}
          type="time"
          value={time}
          required
          onInput={(value) => onChange({ time: value })}
        />
      </div>
    </>
  );
}

const timeText = (ms: number): string => formatDate(ms, { dateStyle: 'medium', timeStyle: 'short' });

const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** As the keys of texts have it. */
const toKey = (interval: (typeof INTERVALS)[number]) => interval.replace(' ', '') as 'lastweek';

/** The user, the groups, and the other users, as far as they are seen. */
function recipients(): readonly (readonly [string, string])[] {
  const others = namedOf('users').filter(({ _id }) => _id !== user.value?._id);
  return [
    ['me', t('schedules.me')],
    ...namedOf('groups').map((one) => [`group ${one._id}`, t('schedules.group', { name: titleOf(one) })] as const),
    ...others.map((one) => [`user ${one._id}`, titleOf(one)] as const),
  ];
}

interface ListProps {
  readonly schedules: readonly Schedule[];
  readonly onChange: () => Promise<void>;
  readonly onRemove: (schedule: Schedule) => void;
}

function ScheduleList({ schedules, ...rest }: ListProps) {
  if (schedules.length === 0) return <p class="quiet">{t('schedules.none')}</p>;
  return (
    <section>
      <h3>{t('schedules.list')}</h3>
      <ul class="items">
        {schedules.map((schedule) => (
          <Item key={schedule._id} schedule={schedule} {...rest} />
        ))}
      </ul>
    </section>
  );
}

function Item({ schedule, onChange, onRemove }: { schedule: Schedule } & Omit<ListProps, 'schedules'>) {
  const work = useWork();
  const { _id, name, report, active, due, lastRun } = schedule;
  const path = { id: _id };
  const change = (send: () => Promise<unknown>): void =>
    void work.run(async () => {
      await send();
      await onChange();
    });
  const button = (text: string, onClick: () => void) => (
    <button type="button" class="button small" aria-label={`${text}: ${name}`} onClick={onClick}>
      {text}
    </button>
  );
  const sendNow = async (): Promise<void> => {
    await request('POST /api/v1/schedules/{id}/run', { path, body: {} });
    notify(t('schedules.asked', { name }));
  };
  return (
    <li class="item schedule" aria-busy={work.isBusy.value}>
      <div class="item-text">
        <h3>
          {name} <span class="tag">{t(`reports.${report}.title`)}</span>
          {!active && <span class="tag warn">{t('schedules.paused')}</span>}
        </h3>
        <p class="quiet">
          {due !== null && t('schedules.next', { time: timeText(due) })} {lastRun && outcomeOf(lastRun)}
        </p>
        <Problem error={work.error.value} />
      </div>
      <div class="schedule-actions">
        {may('POST', `/schedules/${_id}/run`) && button(t('schedules.run'), () => change(sendNow))}
        {may('PATCH', `/schedules/${_id}`) &&
          button(t(active ? 'schedules.pause' : 'schedules.resume'), () =>
            change(() => request('PATCH /api/v1/schedules/{id}', { path, body: { active: !active } })),
          )}
        {may('DELETE', `/schedules/${_id}`) && button(t('action.remove'), () => onRemove(schedule))}
      </div>
    </li>
  );
}

function outcomeOf({ time, status, mails, error }: LastRun): string {
  const when = timeText(time);
  if (status === 'failed') return t('schedules.failed', { time: when, error: error ?? '' });
  return t(`schedules.${status}`, { time: when, mails: tn('schedules.mails', mails) });
}

interface RemoveProps {
  readonly schedule: Schedule;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function Remove({ schedule: { _id, name }, onDone, onClose }: RemoveProps) {
  return (
    <Confirm
      title={t('schedules.removeTitle', { name })}
      text={t('schedules.removeAbout')}
      action={t('action.remove')}
      onConfirm={async () => {
        await request('DELETE /api/v1/schedules/{id}', { path: { id: _id } });
        await onDone();
      }}
      onClose={onClose}
    />
  );
}
