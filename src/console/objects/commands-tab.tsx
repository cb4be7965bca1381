/** Sends commands to an object, and shows what becomes of them. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isModelLoading, type Model, modelOf } from '../home/values.js';
import { Age } from '../parts/age.js';
import { Problem } from '../parts/form.js';
import { Empty, Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { type Entity, type Json, list } from '../state/api.js';
import { nowMs, serverNowMs } from '../state/clock.js';
import { type Fetched, useFetched } from '../state/fetched.js';
import type { FleetObject } from '../state/fleet.js';
import { interruptions, onEvent } from '../state/live.js';
import { namedOf, titleOf } from '../state/references.js';
import { user } from '../state/session.js';
import { formatMoment, t } from '../text/language.js';
import { maySend, namedIn, SendCommand } from './send-command.js';

interface Command extends Entity {
  readonly command: string;
  readonly params: Json;
  readonly status: 'queued' | 'sent' | 'delivered' | 'done' | 'failed' | 'expired';
  /** The user who sent it. */
  readonly owner: string;
  readonly times: Readonly<Record<string, number>>;
  readonly time: number;
  readonly result?: unknown;
}

const SHOWN = 30;
const STEPS = ['queued', 'sent', 'delivered', 'done'] as const;
const BAD = new Set<string>(['failed', 'expired']);
const ENDED = new Set(['done', ...BAD]);
const POLL_S = 3;

export function CommandsTab({ object }: { object: FleetObject }) {
  const journal = useJournal(object._id);
  const model = modelOf(object._id, object.model);
  return (
    <>
      <SendPart object={object} model={model} onSent={() => void journal.reload()} />
      <Section title={t('commands.journal')}>
        <Problem error={journal.error.value} seenMs={journal.seenMs.value} />
        {journal.data.value === null && !journal.error.value && <Skeleton rows={3} />}
        {journal.data.value?.length === 0 && <Empty icon="zap" title={t('commands.none')} />}
        <ul class="items">
          {journal.data.value?.map((command) => (
            <CommandItem key={command._id} command={command} model={model} />
          ))}
        </ul>
      </Section>
    </>
  );
}

/** Not before the model is known: it says which commands there are. */
function SendPart({ object, model, onSent }: Parameters<typeof SendCommand>[0]) {
  if (isModelLoading(object.model)) return <Skeleton rows={2} />;
  if (!maySendAny(object._id, model)) return <p class="hint">{t('commands.notPermitted')}</p>;
  return <SendCommand object={object} model={model} onSent={onSent} />;
}

/** Whether any command that the model declares is permitted; without a declaration, whether every name is. */
const maySendAny = (objectId: string, model: Model | undefined): boolean =>
  maySend(objectId, 'any') || (model?._actions ?? []).some(({ id }) => maySend(objectId, id));

/** The newest commands. Events report their beginning and end; the steps in between are polled while a command is open. */
function useJournal(id: string): Fetched<Command[]> {
  const journal = useFetched(
    () => list<Command>(`/objects/${id}/commands`, { sortBy: '-_id', limit: SHOWN }),
    [id, interruptions.value],
    `commands ${id}`,
  );
  const askedS = useSignal(0);
  useEffect(
    () =>
      onEvent(({ name, data }) => {
        if (name.startsWith('object-command-') && data.id === id) void journal.reload();
      }),
    [id],
  );
  useEffect(() => {
    const second = Math.floor(nowMs.value / 1_000);
    const isOpen = journal.data.value?.some(({ status }) => !ENDED.has(status)) ?? false;
    if (!isOpen || second - askedS.value < POLL_S) return;
    askedS.value = second;
    void journal.reload();
  }, [nowMs.value]);
  return journal;
}

/** Users whose names the reader may not read remain without. */
function senderOf({ owner }: Command): string {
  if (owner === user.value?._id) return t('commands.by', { name: user.value.login });
  const known = namedOf('users').find(({ _id }) => _id === owner);
  return known === undefined ? t('commands.byOther') : t('commands.by', { name: titleOf(known) });
}

function CommandItem({ command, model }: { command: Command; model: Model | undefined }) {
  const { status, times, params, result } = command;
  const end = ENDED.has(status) && status !== 'done' ? status : 'done';
  const steps = [...STEPS.slice(0, 3), end] as const;
  return (
    <li class="item command">
      <div class="item-text">
        <h3>
          {namedIn(model?._actions, command.command)}
          <span class={`tag ${status === 'done' ? 'good' : BAD.has(status) ? 'bad' : ''}`}>
            {t(`command.${status}`)}
          </span>
        </h3>
        {Object.keys(params ?? {}).length > 0 && <code>{JSON.stringify(params)}</code>}
        <ol class="line">
          {steps.map((step) => (
            <li key={step} class={times[step] ? `reached${BAD.has(step) ? ' bad' : ''}` : ''}>
              <span>{t(`command.${step}`)}</span>
              <small>{times[step] ? formatMoment(times[step], serverNowMs()) : ''}</small>
            </li>
          ))}
        </ol>
        {result !== undefined && (
          <p class="quiet">
            {t('commands.result')}: <code>{JSON.stringify(result)}</code>
          </p>
        )}
      </div>
      <small class="quiet">
        <Age ms={command.time} /> {senderOf(command)}
      </small>
    </li>
  );
}
