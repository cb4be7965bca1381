/** Parameters that objects send and that a model does not declare, to choose from. */
import { useSignal } from '@preact/signals';
import { fold } from '../../core/fold.js';
import { ObjectField } from '../account/object-field.js';
import { formatValue } from '../home/values.js';
import { Dialog } from '../parts/dialog.js';
import { Problem } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { type ControlObjectFields, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { isParameter } from '../state/merge-state.js';
import { write } from '../state/write.js';
import { formatNumber, loadTexts, type TextLoader, t, tn } from '../text/language.js';
import { type Proposal, proposalsOf, toNode } from './proposals.js';
import type { Node } from './tree.js';

const PROPOSALS_TEXTS: TextLoader = {
  en: () => import('../text/english-proposals.js'),
  de: () => import('../text/german-proposals.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(PROPOSALS_TEXTS);

/** Of a model: those that sent something last. */
const MOST_OBJECTS = 20;
const MOST_SHOWN = 100;
/** More are searched. */
const FEW = 10;
const SAMPLE_LENGTH = 60;

interface ProposeProps {
  /** Null for a model that is not stored yet. */
  readonly modelId: string | null;
  readonly tree: Node;
  readonly onAdd: (nodes: readonly Node[]) => void;
  readonly onClose: () => void;
}

export function ProposeDialog({ modelId, tree, onAdd, onClose }: ProposeProps) {
  const objectId = useSignal<string | null>(null);
  const { data, error } = useFetched(
    async () => proposalsOf(await readValues(modelId, objectId.value), tree),
    [objectId.value],
  );
  const isAsked = modelId !== null || objectId.value !== null;
  return (
    <Dialog title={t('proposals.title')} onClose={onClose} size="medium">
      <ObjectField
        label={t(modelId === null ? 'proposals.object' : 'proposals.otherObject')}
        onChoose={write(objectId)}
      />
      <Problem error={error.value} />
      {isAsked && data.value === null && !error.value && <Skeleton rows={4} />}
      {isAsked && data.value !== null && <Choices key={objectId.value} proposals={data.value} onAdd={onAdd} />}
    </Dialog>
  );
}

async function readValues(modelId: string | null, objectId: string | null): Promise<[string, unknown][]> {
  if (modelId === null && objectId === null) return [];
  const where: Record<string, string> = objectId === null ? { model: modelId as string } : { _id: objectId };
  const query = { state: 'latest-of-each', where, sortBy: '-state.time', limit: MOST_OBJECTS } as const;
  const found = (await request('GET /api/v1/objects', { query })) as ControlObjectFields[];
  const values = found.flatMap(({ latest }) => Object.entries(latest ?? {}));
  return values.filter(([name]) => isParameter(name)).map(([name, { value }]): [string, unknown] => [name, value]);
}

interface ChoicesProps extends Pick<ProposeProps, 'onAdd'> {
  readonly proposals: readonly Proposal[];
}

function Choices({ proposals, onAdd }: ChoicesProps) {
  const search = useSignal('');
  // Nobody adds what is not shown without having asked for it.
  const leftOut = useSignal(namesOf(proposals.slice(MOST_SHOWN)));
  if (proposals.length === 0) return <p class="quiet">{t('proposals.none')}</p>;
  const wanted = fold(search.value.trim());
  const found = proposals.filter(({ name }) => fold(name).includes(wanted));
  const chosen = proposals.filter(({ name }) => !leftOut.value.has(name));
  const toggle = (name: string): void => {
    const next = new Set(leftOut.value);
    if (!next.delete(name)) next.add(name);
    leftOut.value = next;
  };
  return (
    <>
      {proposals.length > FEW && (
        <div class="search">
          <input
            type="search"
            aria-label={t('proposals.find')}
            placeholder={t('proposals.find')}
            value={search.value}
            onInput={(event) => write(search)(event.currentTarget.value)}
          />
        </div>
      )}
      <List proposals={found.slice(0, MOST_SHOWN)} leftOut={leftOut.value} onToggle={toggle} />
      {found.length > MOST_SHOWN && (
        <p class="hint">{t('proposals.more', { count: formatNumber(found.length - MOST_SHOWN) })}</p>
      )}
      <p class="buttons">
        <button
          type="button"
          class="button primary"
          disabled={chosen.length === 0}
          onClick={() => onAdd(chosen.map(toNode))}
        >
          {tn('proposals.add', chosen.length)}
        </button>
        <button
          type="button"
          class="button"
          onClick={() => write(leftOut)(namesOf(chosen.length === 0 ? [] : proposals))}
        >
          {t(chosen.length === 0 ? 'proposals.all' : 'proposals.noneOfThem')}
        </button>
      </p>
    </>
  );
}

const namesOf = (proposals: readonly Proposal[]): ReadonlySet<string> => new Set(proposals.map(({ name }) => name));

interface ListProps {
  readonly proposals: readonly Proposal[];
  readonly leftOut: ReadonlySet<string>;
  readonly onToggle: (name: string) => void;
}

const List = ({ proposals, leftOut, onToggle }: ListProps) => (
  <ul class="column-choices">
    {proposals.map((proposal) => (
      <li key={proposal.name}>
        <label class="check">
          <input type="checkbox" checked={!leftOut.has(proposal.name)} onChange={() => onToggle(proposal.name)} />
          <span>
            {proposal.name} <span class="quiet">{aboutOf(proposal)}</span>
          </span>
        </label>
      </li>
    ))}
  </ul>
);

function aboutOf({ dataType, sample }: Proposal): string {
  const text = formatValue(sample);
  const short = text.length > SAMPLE_LENGTH ? `${text.slice(0, SAMPLE_LENGTH)}…` : text;
  return `${dataType ?? t('models.anyType')} · ${short}`;
}
