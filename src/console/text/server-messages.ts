/** What the server says of a field, in the user's language. Pure, and loaded when the server first refuses a field. */
import { ENGLISH_FAULTS, type FaultKey } from './english-faults.js';
import { GERMAN_FAULTS } from './german-faults.js';

const MESSAGES: readonly (readonly [RegExp, FaultKey])[] = [
  [/^(required|may not be empty|may not be blank)$/, 'required'],
  [/^already taken$/, 'taken'],
  [/^wrong password$/, 'wrongPassword'],
  [/^expected at least (\d+) characters$/, 'atLeast'],
  [/^expected at most (\d+) characters$/, 'atMost'],
  [/^expected at least (\d+)$/, 'least'],
  [/^expected at most (\d+)$/, 'most'],
  [/^expected more than (\d+)$/, 'more'],
  [/^expected a number$|^must be number$/, 'number'],
  [/^expected a whole number$|^must be integer$/, 'integer'],
  [/^expected text$|^must be string$/, 'text'],
  [/^must be >= (\S+)$/, 'least'],
  [/^must be <= (\S+)$/, 'most'],
  [/^must be > (\S+)$/, 'more'],
  [/^must be < (\S+)$/, 'fewer'],
  [/^must NOT have fewer than (\d+) characters$/, 'atLeast'],
  [/^must NOT have more than (\d+) characters$/, 'atMost'],
  [/^must match format "?([\w-]+)"?$/, 'format'],
  [/^must match pattern "?(.+?)"?$/, 'pattern'],
  [/^must be equal to one of the allowed values$/, 'choice'],
  [/^expected an email address$/, 'email'],
  [/^expected an address that begins with https/, 'webAddress'],
  [/^expected \{z\}|^expected no placeholders/, 'tilesAddress'],
  [/^expected an origin/, 'origin'],
  [/^not the one that was sent to this channel; (\d+) more may be tried$/, 'code'],
  [/^expected the address of a topic/, 'topic'],
  [/^expected the number of a chat/, 'chat'],
  [/^expected a time zone/, 'zone'],
  [/^expected another time than/, 'otherTime'],
  [/^expected a duration from 1 s to 366 days/, 'duration'],
  [/^expected "METHOD /, 'request'],
  [/^may not contain #, \/ or control characters$/, 'characters'],
  [/^may not be \*/, 'ownId'],
  [/^not a group of yours/, 'notYours'],
  [/^it belongs to a group that is not yours$/, 'foreign'],
  [/^an argument needs an id/, 'parameterId'],
  [/^this value has a state already$/, 'stateTwice'],
  [/^expected from, to or both$/, 'fromOrTo'],
  [/^expected more than from$/, 'moreThanFrom'],
  [/^expected a number, as dataType says$/, 'number'],
  [/^expected a boolean, as dataType says$/, 'trueOrFalse'],
  [/^only numbers, booleans and texts have states$/, 'noStates'],
  [/^only numbers have thresholds$/, 'noThresholds'],
  [/^an action needs an id/, 'commandId'],
];

const FAULTS = {
  en: ENGLISH_FAULTS,
  de: GERMAN_FAULTS,
};

/** The text for a message; one that is not known stays as the server wrote it. */
export function toText(message: string, language: keyof typeof FAULTS): string {
  for (const [pattern, key] of MESSAGES) {
    const found = pattern.exec(message);
    if (found) return FAULTS[language][key].replace('{count}', found[1] ?? '');
  }
  return message;
}

/** The path and the message of `config.x: expected text`; null if no path is named. */
export function splitHelper(helper: string): readonly [path: string, message: string] | null {
  const [, path, message] = /^([^\s:,]+): (.+)$/s.exec(helper) ?? [];
  return path === undefined || message === undefined ? null : [path, message];
}
