/** Changes the chosen objects together: first a dry run says what would change, then it is done. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { Dialog } from '../parts/dialog.js';
import { Field, Form, Select, useWork } from '../parts/form.js';
import { notify } from '../parts/notices.js';
import { labelsOf } from '../state/by-name.js';
import type { FleetObject } from '../state/fleet.js';
import { groupsBelow, namedOf, titleOf } from '../state/references.js';
import { may, user } from '../state/session.js';
import { formatNumber, t, tn } from '../text/language.js';
import { type BulkChange, CHANGES, toRequests } from './bulk.js';
import { type Refused, sendAll } from './bulk-send.js';
import { mayMove } from './chosen.js';

interface BulkDialogProps {
  readonly objects: readonly FleetObject[];
  readonly onClose: () => void;
}

/** What a dry run has said; after the change, of what is left. */
interface Plan {
  readonly selected: number;
  readonly same: number;
  readonly refused: readonly Refused[];
}

export function BulkDialog({ objects, onClose }: BulkDialogProps) {
  // As they were chosen: what a filter hides meanwhile stays meant.
  const chosen = useMemo(() => objects, []);
  const kinds = CHANGES.filter((kind) => (kind === 'group' ? mayMove() : may('PATCH', '/objects')));
  const change = useSignal<BulkChange>({ kind: kinds[0] ?? 'group', value: '' });
  const plan = useSignal<Plan | null>(null);
  const work = useWork();
  const set = (next: BulkChange): void => {
    change.value = next;
    plan.value = null;
  };
  const check = async (): Promise<void> => {
    const wanted = change.peek();
    const requests = toRequests(wanted, chosen);
    const { refused, count } = await sendAll(requests, true);
    // Somebody may have gone on meanwhile.
    if (change.peek() === wanted) plan.value = { selected: chosen.length, same: chosen.length - count, refused };
  };
  const apply = async (): Promise<void> => {
    const { refused, done } = await sendAll(toRequests(change.peek(), chosen), false);
    notify(tn('bulk.done', done));
    if (refused.length === 0) onClose();
    else plan.value = { selected: chosen.length, same: chosen.length - refused.length, refused };
  };
  const planned = plan.value;
  const changing = planned === null ? 0 : planned.selected - planned.same - planned.refused.length;
  return (
    <Dialog title={tn('bulk.title', chosen.length)} onClose={onClose} size="medium">
      <Form
        work={work}
        submit={planned === null ? t('bulk.check') : tn('bulk.apply', changing)}
        disabled={
          (change.value.value.trim() === '' && change.value.kind !== 'offlineAfter') ||
          (planned !== null && changing === 0)
        }
        onSubmit={planned === null ? check : apply}
        onCancel={onClose}
      >
        <Select
          label={t('bulk.what')}
          value={change.value.kind}
          options={kinds.map((kind) => [kind, t(`bulk.${kind}`)])}
          onChange={(kind) => set({ kind: kind as BulkChange['kind'], value: '' })}
        />
        <Value key={change.value.kind} change={change.value} objects={chosen} onChange={set} />
        {planned && <Planned plan={planned} changing={changing} objects={chosen} />}
      </Form>
    </Dialog>
  );
}

interface ValueProps {
  readonly change: BulkChange;
  readonly objects: readonly FleetObject[];
  readonly onChange: (change: BulkChange) => void;
}

function Value({ change: { kind, value }, objects, onChange }: ValueProps) {
  const set = (next: string): void => onChange({ kind, value: next });
  if (kind === 'addLabel') {
    return <Field label={t('bulk.label')} value={value} onInput={set} />;
  }
  if (kind === 'offlineAfter') {
    return <Field label={t('bulk.offlineAfter')} hint={t('bulk.offlineAfterHint')} value={value} onInput={set} />;
  }
  return (
    <Select
      label={t(kind === 'removeLabel' ? 'bulk.label' : `bulk.${kind}`)}
      value={value}
      options={[['', '–'], ...optionsOf(kind, objects)]}
      onChange={set}
    />
  );
}

function optionsOf(kind: 'group' | 'model' | 'removeLabel', objects: readonly FleetObject[]): [string, string][] {
  if (kind === 'removeLabel') return [...new Set(objects.flatMap(labelsOf))].sort().map((label) => [label, label]);
  const all = namedOf(kind === 'group' ? 'groups' : 'models');
  // Objects go into one's own group, or into one below it.
  const below = kind === 'group' ? groupsBelow(user.value?.group ?? '', all) : null;
  return all.filter(({ _id }) => below?.has(_id) ?? true).map((one) => [one._id, titleOf(one)]);
}

const MOST_REASONS = 20;

interface PlannedProps {
  readonly plan: Plan;
  readonly changing: number;
  readonly objects: readonly FleetObject[];
}

function Planned({ plan: { selected, same, refused }, changing, objects }: PlannedProps) {
  const nameOf = (id: string): string => objects.find(({ _id }) => _id === id)?.name ?? id;
  return (
    <div class="bulk-plan" role="status">
      <p>
        <strong>{t('bulk.plan', { changing: formatNumber(changing), selected: formatNumber(selected) })}</strong>
        {same > 0 && ` ${tn('bulk.same', same)}`}
      </p>
      {refused.length > 0 && (
        <>
          <p class="hint warn">{tn('bulk.refused', refused.length)}</p>
          <ul class="reasons">
            {refused.slice(0, MOST_REASONS).map(({ id, reason }) => (
              <li key={id}>
                {nameOf(id)}: {reason}
              </li>
            ))}
          </ul>
          {refused.length > MOST_REASONS && (
            <p class="quiet">{t('bulk.more', { count: formatNumber(refused.length - MOST_REASONS) })}</p>
          )}
        </>
      )}
    </div>
  );
}
