/** Values with their labels and units, and a place. */
import type { Tone } from '../../core/tones.js';
import { ToneMark } from '../home/tone.js';
import { t } from '../text/language.js';
import { Age } from './age.js';

/** Longer ones, such as versions, are written smaller. */
const LONG_CHARACTERS = 10;

interface ValuesProps {
  readonly values: readonly {
    readonly name: string;
    readonly label: string;
    readonly text: string;
    readonly unit: string;
    /** Shows how old the value is. */
    readonly timeMs?: number | undefined;
    /** What the value means. */
    readonly tone?: Tone;
    readonly note?: string;
  }[];
  /** In degrees. */
  readonly position?: { readonly lat: number; readonly lon: number } | null;
  /** Shows how old the position is. */
  readonly positionMs?: number | undefined;
  /** Each on a card of its own, for pages with space. */
  readonly isLarge?: boolean;
}

export function Values({ values, position, positionMs, isLarge = false }: ValuesProps) {
  return (
    <dl class={isLarge ? 'value-cards' : 'values'}>
      {values.map(({ name, label, text, unit, timeMs, tone, note }) => (
        <div key={name} class={text.length > LONG_CHARACTERS ? 'long' : ''} data-tone={tone}>
          <dt>{label}</dt>
          <dd>
            {text}
            {unit !== '°' && ' '}
            <small>{unit}</small> <ToneMark tone={tone} note={note} />
          </dd>
          {note && <dd class="age">{note}</dd>}
          {timeMs !== undefined && (
            <dd class="age">
              <Age ms={timeMs} />
            </dd>
          )}
        </div>
      ))}
      {position && (
        <div class="place long">
          <dt>{t('card.position')}</dt>
          <dd>
            <span>{position.lat.toFixed(5)},</span> <span>{position.lon.toFixed(5)}</span>
          </dd>
          {positionMs !== undefined && (
            <dd class="age">
              <Age ms={positionMs} />
            </dd>
          )}
        </div>
      )}
    </dl>
  );
}
