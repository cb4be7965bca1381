/** The permissions of a role or of a token as boxes, with what a change means; and as text. */
import { useSignal } from '@preact/signals';
import { useContext, useMemo, useRef } from 'preact/hooks';
import { mayGrant } from '../../core/grants.js';
import { toLines } from '../account/token-scopes.js';
import { FormWork } from '../parts/field-errors.js';
import { Field, Problem } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Skeleton } from '../parts/notices.js';
import { type Entity, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import { namedOf } from '../state/references.js';
import { user } from '../state/session.js';
import { write } from '../state/write.js';
import { loadTexts, type TextLoader, t } from '../text/language.js';
import { Effect } from './effect.js';
import { createGrid, otherLines, requestsIn, toggle } from './grid.js';
import { PermissionTable } from './table.js';

const ROLES_TEXTS: TextLoader = {
  en: () => import('../text/english-roles.js'),
  de: () => import('../text/german-roles.js'),
};

/** Before it is shown. */
export const loadOwnTexts = (): Promise<void> => loadTexts(ROLES_TEXTS);

export interface PermissionInputProps {
  readonly name: string;
  readonly label: string;
  readonly hint: string | undefined;
  /** The lines. */
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** The role; null for a new one, and for a token. */
  readonly entity: Entity | null;
}

/** The rows and boxes, of what the service declares and of the own stores that the user sees; null until they are known. */
function useGrid() {
  const { data, error } = useFetched(() => request('GET /api/v1/openapi.json', {}));
  const stores = namedOf('stores').flatMap(({ name }) => name ?? []);
  const names = [...new Set(stores)].sort().join(' ');
  const grid = useMemo(
    () => data.value && createGrid(requestsIn(data.value), names.split(' ').filter(Boolean)),
    [data.value, names],
  );
  return { grid, error };
}

export function PermissionInput({ name, label, hint, value, onInput, entity: role }: PermissionInputProps) {
  const { grid, error } = useGrid();
  // As they were when the form was opened.
  const stored = useRef(toLines(value)).current;
  const lines = toLines(value);
  const caller = user.value;
  // The service refuses any change of such a role.
  const isTooWide = role !== null && caller != null && !mayGrant(caller, stored);
  const note = useSignal('');
  const others = grid === null ? [] : otherLines(lines, grid);
  const set = (changed: readonly string[]): void => onInput(changed.join('\n'));
  return (
    <fieldset class="permissions">
      <legend>{label}</legend>
      {isTooWide && <p class="hint warn">{t('roles.tooWide')}</p>}
      {role !== null && role._id === caller?.role && <p class="hint warn">{t('roles.own')}</p>}
      <Problem error={error.value} />
      {grid === null && !error.value && <Skeleton rows={8} />}
      {grid !== null && (
        <PermissionTable
          grid={grid}
          lines={lines}
          mayChange={!isTooWide}
          mayPermit={(line) => caller != null && mayGrant(caller, [line])}
          onToggle={(box) => set(toggle(box, lines, stored))}
          onNote={write(note)}
        />
      )}
      {others.length > 0 && (
        <Others lines={others} onRemove={isTooWide ? null : (line) => set(lines.filter((one) => one !== line))} />
      )}
      <Text name={name} label={label} hint={hint} value={value} onInput={onInput} isOpen={error.value !== null} />
      {grid !== null && (
        <Effect grid={grid} before={role === null ? [] : stored} after={lines} role={role} note={note.value} />
      )}
    </fieldset>
  );
}

interface OthersProps {
  readonly lines: readonly string[];
  /** null if the user may not change the role. */
  readonly onRemove: ((line: string) => void) | null;
}

function Others({ lines, onRemove }: OthersProps) {
  return (
    <div class="permission-others">
      <p>{t('roles.others')}</p>
      <ul>
        {[...new Set(lines)].map((line) => (
          <li key={line}>
            <code>{line}</code>
            {onRemove && (
              <button
                type="button"
                class="icon-button"
                aria-label={t('roles.removeLine', { line })}
                onClick={() => onRemove(line)}
              >
                <Icon name="close" size={16} />
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

type TextProps = Omit<PermissionInputProps, 'entity'> & { readonly isOpen: boolean };

const LEAST_ROWS = 4;
const MOST_ROWS = 14;

/** The lines as they are stored. An error of the field opens it. */
function Text({ isOpen, ...field }: TextProps) {
  const isUnfolded = useSignal(isOpen);
  const isFaulty = useContext(FormWork)?.fault.value?.field === field.name;
  const rows = Math.min(MOST_ROWS, Math.max(LEAST_ROWS, field.value.split('\n').length));
  return (
    <details
      open={isUnfolded.value || isOpen || isFaulty}
      onToggle={(event) => {
        isUnfolded.value = event.currentTarget.open;
      }}
    >
      <summary>{t('roles.asText')}</summary>
      <Field {...field} rows={rows} />
    </details>
  );
}
