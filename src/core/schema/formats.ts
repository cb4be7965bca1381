/** The formats of JSON Schema. Each pattern runs in time linear to the text, whose length is bounded. */

import type { Json } from '../json.js';
import { LIMITS } from '../limits.js';
import type { StepBudget } from './step-budget.js';

type IsOfFormat = (value: Json) => boolean;

const DATE = '\\d\\d\\d\\d-[0-1]\\d-[0-3]\\d';
const TIME = '(?:[0-2]\\d:[0-5]\\d:[0-5]\\d|23:59:60)(?:\\.\\d+)?';
const ZONE = '(?:z|[+-]\\d\\d(?::?\\d\\d)?)';
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const HOSTNAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`, 'i');

const text =
  (isMatch: (value: string) => boolean): IsOfFormat =>
  (value) =>
    typeof value !== 'string' || isMatch(value);
const boundedText = (isMatch: (value: string) => boolean): IsOfFormat =>
  text((value) => value.length <= LIMITS.schemaFormatCharacters && isMatch(value));
const matching = (pattern: RegExp): IsOfFormat => boundedText((value) => pattern.test(value));
const number =
  (isMatch: (value: number) => boolean): IsOfFormat =>
  (value) =>
    typeof value !== 'number' || isMatch(value);

const FORMATS: ReadonlyMap<string, IsOfFormat> = new Map([
  ['date', matching(new RegExp(`^${DATE}$`))],
  ['time', matching(new RegExp(`^${TIME}${ZONE}$`, 'i'))],
  ['date-time', matching(new RegExp(`^${DATE}t${TIME}${ZONE}$`, 'i'))],
  ['iso-time', matching(new RegExp(`^${TIME}${ZONE}?$`, 'i'))],
  ['iso-date-time', matching(new RegExp(`^${DATE}[t\\s]${TIME}${ZONE}?$`, 'i'))],
  ['duration', boundedText(isDuration)],
  ['uri', matching(/^[a-z][a-z0-9+\-.]*:[^\s]*$/i)],
  ['uri-reference', matching(/^(?:(?:[a-z][a-z0-9+\-.]*:)?\/?\/)?(?:[^\\\s#][^\s#]*)?(?:#[^\\\s]*)?$/i)],
  [
    'uri-template',
    matching(
      /^(?:[^\0-\x20"'<>%\\^`{|}]|%[0-9a-f]{2}|\{[+#./;?&=,!@|]?(?:[a-z0-9_]|%[0-9a-f]{2})+(?::[1-9][0-9]{0,3}|\*)?(?:,(?:[a-z0-9_]|%[0-9a-f]{2})+(?::[1-9][0-9]{0,3}|\*)?)*\})*$/i,
    ),
  ],
  ['url', boundedText(isUrl)],
  ['email', matching(new RegExp(`^[a-z0-9.!#$%&'*+/=?^_\`{|}~-]+@${LABEL}(?:\\.${LABEL})*$`, 'i'))],
  ['hostname', boundedText((value) => value.length <= 254 && HOSTNAME.test(value))],
  ['ipv4', matching(IPV4)],
  ['ipv6', boundedText((value) => /^[0-9a-f:.]{2,45}$/i.test(value) && URL.canParse(`http://[${value}]/`))],
  ['regex', boundedText(isRegExp)],
  ['uuid', matching(/^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i)],
  ['json-pointer', matching(/^(?:\/(?:[^~/]|~0|~1)*)*$/)],
  ['json-pointer-uri-fragment', matching(/^#(?:\/(?:[a-z0-9_\-.!$&'()*+,;:=@]|%[0-9a-f]{2}|~0|~1)*)*$/i)],
  ['relative-json-pointer', matching(/^(?:0|[1-9][0-9]*)(?:#|(?:\/(?:[^~/]|~0|~1)*)*)$/)],
  ['byte', text((value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value))],
  ['int32', number((value) => Number.isInteger(value) && value === (value | 0))],
  ['int64', number(Number.isInteger)],
]);

// Weeks stand alone, and neither `P` nor `T` may end the text.
function isDuration(value: string): boolean {
  const pattern = /^P(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/;
  return pattern.test(value) && !value.endsWith('P') && !value.endsWith('T');
}

function isUrl(value: string): boolean {
  return /^(?:https?|ftp):\/\/[^\s]+$/i.test(value) && URL.canParse(value);
}

function isRegExp(value: string): boolean {
  try {
    return new RegExp(value) !== null;
  } catch {
    return false;
  }
}

/** Whether a value matches the format. Unknown formats, and values of types that a format does not cover, always match. */
export function isOfFormat(format: string, value: Json, budget: StepBudget): boolean {
  if (typeof value === 'string') budget.spend(Math.min(value.length, LIMITS.schemaFormatCharacters));
  return FORMATS.get(format)?.(value) ?? true;
}
