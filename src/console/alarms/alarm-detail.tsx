/** One alarm: why it was raised, what it read, where, what was done about it, and what to do now. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Age } from '../parts/age.js';
import { Confirm } from '../parts/confirm.js';
import { Field, Form, Problem, useWork } from '../parts/form.js';
import { Icon, type IconName } from '../parts/icon.js';
import { Skeleton } from '../parts/notices.js';
import { type Alarm, isOpen, isWaiting, onAlarm } from '../state/alarms.js';
import { request } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { useFetched } from '../state/fetched.js';
import { objectRevision } from '../state/fleet.js';
import { interruptions } from '../state/live.js';
import { toAddress } from '../state/location.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatMoment, t } from '../text/language.js';
import { formatSpan } from '../text/spans.js';
import { acknowledge, addNote, clear, mayAcknowledge } from './alarm-actions.js';
import { nameOfObject } from './alarm-list.js';
import { personOf, readText, summaryOf } from './alarm-values.js';
import { focusRow } from './keys.js';
import { SeverityMark } from './severity.js';

interface Part {
  readonly place: string;
  readonly condition: string;
  readonly holds: boolean | null;
  readonly value: unknown;
  readonly since: number | null;
}

interface Note {
  readonly time: number;
  readonly user: string;
  readonly text: string;
}

interface Action {
  readonly command?: string;
  readonly webhook?: string;
  readonly error?: string;
  /** Of what followed later. */
  readonly time?: number;
}

/** A message that was sent, or given up. */
interface Message {
  readonly user: string;
  readonly channel: string;
  readonly time: number;
  readonly error?: string;
}

/** All of an alarm. */
interface WholeAlarm extends Alarm {
  readonly why?: readonly Part[];
  readonly notes?: readonly Note[];
  readonly actions?: readonly Action[];
  readonly notified?: readonly Message[];
  /** The gateway because of which nobody is told. */
  readonly suppressedBy?: string;
  readonly late?: boolean;
  readonly clearReason?: string;
  readonly clearedBy?: { readonly user: string; readonly note: string | null } | null;
}

/** Reads the alarm; what came live meanwhile is newer. */
async function readAlarm(id: string): Promise<WholeAlarm> {
  let since: Partial<Alarm> = {};
  const stop = onAlarm((alarm) => {
    if (alarm._id === id) since = alarm;
  });
  try {
    const read = (await request('GET /api/v1/alarms/{id}', { path: { id } })) as unknown as WholeAlarm;
    return { ...read, ...since };
  } finally {
    stop();
  }
}

/** The alarm as it is now. */
function useAlarm(id: string) {
  const fetched = useFetched(() => readAlarm(id), [id, interruptions.value], `alarm ${id}`);
  useEffect(
    () =>
      onAlarm((alarm) => {
        const { data } = fetched;
        if (alarm._id === id && data.peek() !== null) data.value = { ...(data.peek() as WholeAlarm), ...alarm };
      }),
    [id],
  );
  return fetched;
}

export function AlarmDetail({ id, onClose }: { id: string; onClose: () => void }) {
  const { data, error, seenMs } = useAlarm(id);
  const alarm = data.value?._id === id ? data.value : null;
  objectRevision.value;
  return (
    <aside class="alarm-detail" aria-label={t('alarm.detail')}>
      <header class="detail-head">
        {alarm && <SeverityMark severity={alarm.severity} size={26} isQuiet={!isWaiting(alarm)} />}
        <div>
          <h2>{alarm?.name ?? t('alarm.detail')}</h2>
          {alarm && (
            <p>
              <a href={toAddress(`/objects/${alarm.object}/live`)}>{nameOfObject(alarm.object)}</a>
            </p>
          )}
        </div>
        <button type="button" class="icon-button" aria-label={t('action.close')} onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {alarm === null && !error.value && <Skeleton rows={5} />}
      <Problem error={error.value} seenMs={seenMs.value} />
      {alarm && <Body key={id} alarm={alarm} />}
    </aside>
  );
}

function Body({ alarm }: { alarm: WholeAlarm }) {
  return (
    <>
      <p class="detail-now">
        <strong>{summaryOf(alarm)}</strong>
        <span class="quiet">
          {t(isOpen(alarm) ? 'alarm.openFor' : 'alarm.wasOpenFor', {
            span: formatSpan((alarm.cleared ?? nowMs.value) - alarm.raised),
          })}
          {alarm.late && ` · ${t('alarm.late')}`}
        </span>
      </p>
      {alarm.suppressedBy && <p class="hint">{t('alarm.suppressed', { object: nameOfObject(alarm.suppressedBy) })}</p>}
      <Act alarm={alarm} />
      <Why parts={alarm.why ?? []} object={alarm.object} />
      <Place alarm={alarm} />
      <History alarm={alarm} />
      <p class="detail-links">
        <a href={toAddress(`/objects/${alarm.object}/history`)}>{t('tab.history')}</a>
        {may('GET', `/rules/${alarm.rule}`) && <a href={toAddress(`/rules/${alarm.rule}`)}>{t('alarm.toRule')}</a>}
      </p>
    </>
  );
}

/** One field for what there is to say: with the acknowledgement, or by itself. */
function Act({ alarm }: { alarm: WholeAlarm }) {
  const text = useSignal('');
  const work = useWork();
  const isClearing = useSignal(false);
  const isOpenNow = isWaiting(alarm) && mayAcknowledge(alarm._id);
  const mayNote = may('POST', `/alarms/${alarm._id}/notes`);
  const mayClear = isOpen(alarm) && may('POST', `/alarms/${alarm._id}/clear`);
  const note = text.value.trim();
  /** The event of what was done may come before the answer: what was typed since then stays. */
  const clearAfter = async (act: Promise<void>): Promise<void> => {
    const sent = text.peek();
    await act;
    if (text.peek() !== sent) return;
    text.value = '';
    // The button that was pressed is disabled or gone now, and the focus would be with it.
    if (!document.activeElement?.matches('textarea, input')) focusRow();
  };
  if (!isOpenNow && !mayNote && !mayClear) return null;
  return (
    <div class="detail-act">
      {isOpenNow && (
        <button
          type="button"
          class="button primary wide"
          aria-busy={work.isBusy.value}
          onClick={() => void work.run(() => clearAfter(acknowledge(alarm._id, note)))}
        >
          <Icon name="check" /> {t(note === '' ? 'alarm.acknowledge' : 'alarm.acknowledgeWithNote')} <kbd>A</kbd>
        </button>
      )}
      {mayNote && (
        <Form
          work={work}
          submit={t('alarm.addNote')}
          disabled={note === ''}
          onSubmit={() => clearAfter(addNote(alarm._id, note))}
        >
          <div class="prose">
            <Field label={t('alarm.note')} name="text" rows={2} value={text.value} onInput={write(text)} />
          </div>
        </Form>
      )}
      {!mayNote && <Problem error={work.error.value} />}
      {mayClear && (
        <button type="button" class="link-button" onClick={() => write(isClearing)(true)}>
          {t('alarm.clear')}
        </button>
      )}
      {isClearing.value && (
        <Confirm
          title={t('alarm.clearTitle')}
          text={t('alarm.clearAbout')}
          action={t('alarm.clear')}
          onConfirm={() => clear(alarm._id)}
          onClose={() => write(isClearing)(false)}
        />
      )}
    </div>
  );
}

function Why({ parts, object }: { parts: readonly Part[]; object: string }) {
  if (parts.length === 0) return null;
  return (
    <section>
      <h3>{t('alarm.why')}</h3>
      <ul class="why">
        {parts.map(({ place, condition, holds, value, since }) => (
          <li key={place} class={holds ? 'holds' : ''}>
            <Icon name={holds ? 'check' : 'minus'} size={16} />
            <span>
              <span class="visually-hidden">
                {t(holds === null ? 'alarm.unknown' : holds ? 'alarm.holds' : 'alarm.holdsNot')}:{' '}
              </span>
              <code>{condition}</code>
              <span class="quiet">
                {readText(object, value) !== '' && ` ${t('alarm.was', { value: readText(object, value) })}`}
                {since !== null && `, ${t('alarm.since', { moment: formatMoment(since, nowMs.value) })}`}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Place({ alarm: { position, object } }: { alarm: WholeAlarm }) {
  if (!position) return null;
  const { lat, lon } = position;
  return (
    <section>
      <h3>{t('card.position')}</h3>
      <p class="detail-place">
        <span>
          {lat.toFixed(5)}, {lon.toFixed(5)}
        </span>
        <a href={toAddress(`/?object=${object}&at=${lat.toFixed(5)},${lon.toFixed(5)},13.00`)}>
          <Icon name="map" size={16} /> {t('alarm.onMap')}
        </a>
      </p>
    </section>
  );
}

interface Step {
  readonly atMs: number;
  readonly icon: IconName;
  readonly text: ComponentChildren;
  readonly note?: string | null | undefined;
  readonly isBad?: boolean;
}

function stepsOf(alarm: WholeAlarm): Step[] {
  const steps: Step[] = [{ atMs: alarm.raised, icon: 'bell', text: t('alarm.raisedStep') }];
  for (const { command, webhook, error, time = alarm.raised } of alarm.actions ?? []) {
    const text = command === undefined ? t('alarm.toldWebhook') : t('alarm.sentCommand', { command });
    if (error !== undefined) steps.push({ atMs: time, icon: 'warning', text, note: error, isBad: true });
    else if (command ?? webhook) steps.push({ atMs: time, icon: 'zap', text });
  }
  for (const { user, channel, time, error } of alarm.notified ?? []) {
    const text = t(error === undefined ? 'alarm.told' : 'alarm.notTold', { name: personOf(user), channel });
    steps.push({ atMs: time, icon: 'bell', text, note: error, isBad: error !== undefined });
  }
  const { acknowledged, cleared, clearReason, clearedBy } = alarm;
  if (acknowledged)
    steps.push({
      atMs: acknowledged.time,
      icon: 'check',
      text: t('alarm.acknowledgedBy', { name: personOf(acknowledged.user) }),
      note: acknowledged.note,
    });
  for (const { time, user, text } of alarm.notes ?? [])
    steps.push({ atMs: time, icon: 'user', text: personOf(user), note: text });
  if (cleared !== null && cleared !== undefined)
    steps.push({
      atMs: cleared,
      icon: 'close',
      text: clearedText(clearReason, clearedBy?.user),
      note: clearedBy?.note,
    });
  return steps.sort((one, other) => one.atMs - other.atMs);
}

const REASONS: Readonly<Record<string, () => string>> = {
  condition: () => t('alarm.clearedCondition'),
  'rule removed': () => t('alarm.clearedRuleRemoved'),
  'rule inactive': () => t('alarm.clearedRuleInactive'),
  'rule changed': () => t('alarm.clearedRuleChanged'),
  'object removed': () => t('alarm.clearedObjectRemoved'),
  'object not selected': () => t('alarm.clearedNotSelected'),
  rights: () => t('alarm.clearedRights'),
};

const clearedText = (reason: string | undefined, person: unknown): string =>
  reason === 'user'
    ? t('alarm.clearedBy', { name: personOf(person) })
    : (REASONS[reason ?? '']?.() ?? t('alarm.cleared'));

function History({ alarm }: { alarm: WholeAlarm }) {
  return (
    <section>
      <h3>{t('alarm.history')}</h3>
      <ol class="alarm-steps">
        {stepsOf(alarm).map(({ atMs, icon, text, note, isBad }, index) => (
          <li key={`${atMs} ${index}`} class={isBad ? 'bad' : ''}>
            <Icon name={icon} size={16} />
            <div>
              <p>
                {text} <span class="quiet">{<Age ms={atMs} />}</span>
              </p>
              {note && <p class="step-note">{note}</p>}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
