/** What a rule watches, in words. */
import { formatValue } from '../home/values.js';
import type { Json } from '../state/api.js';
import { nameOf } from '../state/references.js';
import { t } from '../text/language.js';
import { isObject, kindOf } from './draft.js';

/** `temperature > 8`, `offline`, `all of: …`. */
export function wordsOf(condition: unknown): string {
  const kind = kindOf(condition);
  const given = condition as Json;
  switch (kind) {
    case 'param':
      return parameterWords(given);
    case 'online':
    case 'offline':
      return t(kind === 'online' ? 'rule.onlineWords' : 'rule.offlineWords');
    case 'silent':
      return t('rule.silentWords', { span: String(given.silent) });
    case 'geofence':
      return fenceWords(given);
    case 'all':
    case 'any':
      return (given[kind] as unknown[]).map(inside).join(` ${t(kind === 'all' ? 'rule.and' : 'rule.or')} `);
    case 'not':
      return t('rule.notWords', { condition: wordsOf(given.not) });
    case 'expr':
      return String(given.expr);
    default:
      return JSON.stringify(condition);
  }
}

const inside = (condition: unknown): string =>
  ['all', 'any'].includes(kindOf(condition)) ? `(${wordsOf(condition)})` : wordsOf(condition);

function parameterWords({ param, op, value }: Json): string {
  if (op === 'changed') return t('rule.changedWords', { param: String(param) });
  const shown = isObject(value)
    ? t('rule.configWords', { name: String(value.config) })
    : Array.isArray(value)
      ? value.map(formatValue).join(op === 'between' ? ' – ' : ', ')
      : formatValue(value);
  return `${param} ${t(`rule.op.${op as '>'}`)} ${shown}`;
}

function fenceWords({ geofence, is, on }: Json): string {
  const names = [geofence].flat().map((id) => nameOf('geofences', id));
  return `${t(`rule.fence.${(is ?? on) as 'inside'}`)} ${names.join(', ')}`;
}

/** The objects of a rule: `Truck 1, Truck 2`, `North · Pump`. */
export function selectionWords(select: unknown, nameOfObject: (key: string) => string): string {
  if (!isObject(select)) return t('rule.everything');
  const { objects, group, model, labels } = select;
  const parts = [
    Array.isArray(objects) ? shorten(objects.map((key) => nameOfObject(String(key)))) : '',
    group ? nameOf('groups', group) : '',
    model ? nameOf('models', model) : '',
    Array.isArray(labels) ? shorten(labels.map(String)) : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? t('rule.everything') : parts.join(' · ');
}

const SHOWN = 3;

const shorten = (names: readonly string[]): string =>
  names.length <= SHOWN ? names.join(', ') : `${names.slice(0, SHOWN).join(', ')} + ${names.length - SHOWN}`;
