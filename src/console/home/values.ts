/** The values of packets as people read them: with the names and units of the object's model. */
import { signal } from '@preact/signals';
import type { Meaning } from '../../core/tones.js';
import { type Json, request } from '../state/api.js';
import { TURN_MS } from '../state/places.js';
import { may } from '../state/session.js';
import { formatNumber, t } from '../text/language.js';
import { loadMeanings, meanings } from './tone.js';

export interface Argument {
  readonly id: string;
  readonly name?: string;
  readonly unit?: string;
  readonly dataType?: string;
  readonly states?: unknown;
  readonly thresholds?: unknown;
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
let asked = new Set<string>();
/** Models that could not be loaded. */
const missing = signal<ReadonlySet<string>>(new Set());

/** A model that could not be loaded is not asked for again for so long: rows are drawn with each packet. */
const RETRY_MS = 5_000;

/** The model of an object, as soon as it is known. */
export function modelOf(objectId: string, modelId: string): Model | undefined {
  if (!asked.has(modelId)) void load(objectId, modelId);
  return models.value.get(modelId);
}

async function load(objectId: string, modelId: string): Promise<void> {
  const mine = asked.add(modelId);
  const model = await (may('GET', `/objects/${objectId}/model`) ? fetchModel(objectId) : null);
  // It may have been changed since.
  if (mine !== asked) return;
  if (model !== null) models.value = new Map([...models.value, [modelId, model]]);
  else {
    setTimeout(() => mine.delete(modelId), RETRY_MS);
    if (!missing.peek().has(modelId)) missing.value = new Set([...missing.peek(), modelId]);
  }
}

/** Null if it cannot be loaded. */
async function fetchModel(objectId: string): Promise<Model | null> {
  try {
    // The document of the API describes arguments and actions only as objects.
    const model = (await request('GET /api/v1/objects/{id}/model', { path: { id: objectId } })) as unknown as Model;
    await loadMeanings(model._arguments);
    return model;
  } catch {
    return null;
  }
}

/** False as well for a model that could not be loaded. */
export const isModelLoading = (modelId: string): boolean => !models.value.has(modelId) && !missing.value.has(modelId);

/** The same, without asking for it. */
export const knownModel = (modelId: string): Model | undefined => models.value.get(modelId);

export function forgetModels(): void {
  asked = new Set();
  missing.value = new Set();
  models.value = new Map();
}

/** Units of the parameters that the built-in model and most devices have. */
const UNITS: Readonly<Record<string, string>> = {
  speed: 'km/h',
  angle: '°',
  course: '°',
  heading: '°',
  height: 'm',
  altitude: 'm',
  temperature: '°C',
};

/** A value as people read it, and what it means. */
export interface Shown extends Omit<Meaning, 'text'> {
  readonly name: string;
  readonly label: string;
  readonly text: string;
  readonly unit: string;
  readonly value: unknown;
  /** When it was measured, if that is long before the rest. */
  readonly timeMs?: number | undefined;
}

/** The time of a value that is older than the newest packet, and not only by a turn. */
export const oldTimeOf = (timeMs: number | undefined, newestMs: number): number | undefined =>
  timeMs !== undefined && timeMs < newestMs - TURN_MS ? timeMs : undefined;

export const argumentOf = (name: string, model: Model | undefined): Argument | undefined =>
  model?._arguments?.find(({ id }) => id === name);

export function toShown(name: string, value: unknown, model: Model | undefined): Shown {
  const declared = argumentOf(name, model);
  const unit = declared?.unit ?? UNITS[name] ?? '';
  return {
    name,
    label: declared?.name || name,
    text: formatValue(value),
    unit,
    value,
    ...(declared && meanings.value?.meaningOf(value, declared)),
  };
}

export function formatValue(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return t(value ? 'value.true' : 'value.false');
  if (value === null) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
