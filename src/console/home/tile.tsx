/** One object as a tile. */

import { worstByObject } from '../state/alarms.js';
import { type FleetObject, objectRevision, objects, parametersOf, stateRevision } from '../state/fleet.js';
import { isPlaceField } from '../state/places.js';
import { presenceOf } from '../state/presence.js';
import { t } from '../text/language.js';
import { useShow } from './address.js';
import { parameterOf, parseColumns } from './columns.js';
import { mainValueOf } from './main-value.js';
import { Mark } from './mark.js';
import { selectedId } from './selection.js';
import { alarmText, hasSentence, Sentence } from './sentence.js';
import { pathOf, useSpark } from './sparks.js';
import { ToneMark } from './tone.js';
import { modelOf, type Shown, toShown } from './values.js';
import { columns } from './view.js';

/** Beside the first one. */
const MOST_OTHERS = 3;

interface TileProps {
  readonly id: string;
  /** Where it is among all tiles. */
  readonly index: number;
  /** With its first value alone. */
  readonly isSmall?: boolean;
}

export function Tile({ id, index, isSmall = false }: TileProps) {
  stateRevision.value;
  objectRevision.value;
  const object = objects.get(id);
  return object === undefined ? null : <Shell object={object} index={index} isSmall={isSmall} />;
}

function Shell({ object, index, isSmall }: Omit<Required<TileProps>, 'id'> & { object: FleetObject }) {
  stateRevision.value;
  const show = useShow();
  const worst = worstByObject.value.get(object._id);
  const [main, ...others] = pinnedOf(object);
  const spark = useSpark(object, !isSmall && typeof main?.value === 'number' ? main.name : undefined);
  return (
    <button
      type="button"
      class={`tile ${worst?.severity ?? ''} ${presenceOf(object)}${isSmall ? ' small' : ''}`}
      data-index={index}
      aria-pressed={selectedId.value === object._id}
      onClick={() => show({ object: object._id })}
    >
      <span class="tile-name">
        <Mark object={object} />
        <span>{object.name}</span>
        {worst && <span class={`worst ${worst.severity}`} role="img" aria-label={t(`severity.${worst.severity}`)} />}
      </span>
      {main === undefined ? (
        <span class="tile-main quiet">–</span>
      ) : (
        <span class="tile-main">
          <span class="tile-value">
            <b>{main.text}</b> <small>{main.unit}</small> <ToneMark {...main} />
          </span>
          <span class="tile-label">{main.label}</span>
          {spark && <Line path={pathOf(spark)} />}
        </span>
      )}
      {!isSmall && (
        <span class="tile-others">
          {others.slice(0, MOST_OTHERS).map((other) => (
            <span key={other.name}>
              <span class="tile-label">{other.label}</span> {other.text} {other.unit} <ToneMark {...other} />
            </span>
          ))}
        </span>
      )}
      <span class="tile-note">
        {worst && <span class={`row-alarm ${worst.severity}`}>{alarmText(worst)}</span>}
        <Sentence object={object} />
      </span>
    </button>
  );
}

const Line = ({ path }: { path: string | null }) =>
  path === null ? null : (
    <svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );

/** The chosen values of an object, as far as it has them; or its most telling one, and what else it says. */
function pinnedOf(object: FleetObject): Shown[] {
  const { state } = object;
  if (state === undefined) return [];
  const model = modelOf(object._id, object.model);
  const toValue = (name: string): Shown => toShown(name, state[name], model);
  const chosen = parseColumns(columns.value)?.flatMap((column) => parameterOf(column) ?? []) ?? [];
  const pinned = chosen.filter((name) => name in state);
  if (pinned.length > 0) return pinned.map(toValue);
  const main = mainValueOf(state, object, hasSentence(object));
  const others = parametersOf(state)
    .filter(([name, value]) => name !== main?.name && !isPlaceField(name, value) && typeof value !== 'object')
    .map(([name]) => toValue(name));
  return main === null ? others : [toValue(main.name), ...others];
}
