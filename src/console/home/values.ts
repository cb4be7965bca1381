/** The values of packets as people read them: with the names and units of the object's model. */
import { signal } from '@preact/signals';
import { call, type Json } from '../state/api.js';
import { type Packet, parametersOf } from '../state/fleet.js';
import { formatNumber, t } from '../text/language.js';

export interface Argument {
  readonly id: string;
  readonly name?: string;
  readonly unit?: string;
  readonly dataType?: string;
}

export interface Action {
  readonly id: string;
  readonly name?: string;
  readonly params?: Json;
}

export interface Model {
  readonly name: string;
  readonly _arguments?: readonly Argument[];
  readonly _actions?: readonly Action[];
}

/** Models by `_id`; they are asked for by the objects that have them. */
const models = signal<ReadonlyMap<string, Model>>(new Map());
const asked = new Set<string>();

/** The model of an object, as soon as it is known. */
export function modelOf(objectId: string, modelId: string): Model | undefined {
  if (!asked.has(modelId)) {
    asked.add(modelId);
    void call<Model & Json>('GET', `/objects/${objectId}/model`)
      .then((model) => {
        models.value = new Map([...models.value, [modelId, model]]);
      })
      .catch(() => asked.delete(modelId));
  }
  return models.value.get(modelId);
}

export function forgetModels(): void {
  asked.clear();
  models.value = new Map();
}

/** Units of the parameters that the built-in model and most devices have. */
const UNITS: Readonly<Record<string, string>> = {
  speed: 'km/h',
  angle: '°',
  height: 'm',
  altitude: 'm',
  temperature: '°C',
};
/** They are shown as a place on the map. */
const PLACE = new Set(['lat', 'lon']);
const PREFERRED = ['speed', 'temperature', 'value', 'level', 'power', 'pressure', 'humidity'];

export interface Shown {
  readonly name: string;
  readonly label: string;
  readonly text: string;
  readonly unit: string;
  readonly value: unknown;
  /** When it was measured, if that is long before the rest. */
  readonly timeMs?: number | undefined;
}

export const isPlace = (name: string): boolean => PLACE.has(name);

export function toShown(name: string, value: unknown, model: Model | undefined): Shown {
  const declared = model?._arguments?.find(({ id }) => id === name);
  const unit = declared?.unit ?? UNITS[name] ?? '';
  return { name, label: declared?.name || name, text: formatValue(value), unit, value };
}

export function formatValue(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return t(value ? 'value.true' : 'value.false');
  if (value === null) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Every value of a packet but its place. */
export function valuesOf(packet: Packet, model: Model | undefined): Shown[] {
  return parametersOf(packet)
    .filter(([name]) => !isPlace(name))
    .map(([name, value]) => toShown(name, value, model));
}

/** The one value for a row of the list. */
export function mainValueOf(packet: Packet, modelId: string): Shown | null {
  const parameters = parametersOf(packet).filter(
    ([name, value]) => !isPlace(name) && (typeof value === 'number' || typeof value === 'boolean'),
  );
  const preferred = PREFERRED.flatMap((name) => parameters.filter(([found]) => found === name))[0] ?? parameters[0];
  return preferred === undefined ? null : toShown(preferred[0], preferred[1], models.value.get(modelId));
}
