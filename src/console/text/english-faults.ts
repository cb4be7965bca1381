/** What may be wrong with a field, in English: loaded when the server first refuses one. */
export const ENGLISH_FAULTS = {
  atLeast: 'Expected at least {count} characters.',
  atMost: 'Expected at most {count} characters.',
  characters: 'May not contain #, / or control characters.',
  choice: 'Expected one of the allowed values.',
  commandId: 'Needs at most 64 characters, without white space, /, + and #.',
  duration: 'Expected a duration from 1 s to 366 days, such as 10 min.',
  email: 'Expected an email address.',
  fewer: 'Expected less than {count}.',
  format: 'Expected the format “{count}”.',
  integer: 'Expected a whole number.',
  least: 'Expected at least {count}.',
  more: 'Expected more than {count}.',
  most: 'Expected at most {count}.',
  number: 'Expected a number.',
  ownId: 'May not be *, blank or 24 hexadecimal digits.',
  parameterId: 'Needs at most 64 characters, without white space.',
  pattern: 'Expected the form {count}.',
  request: 'Expected a method and a path in each line, such as GET /objects/*.',
  required: 'This is required.',
  taken: 'This is already taken.',
  text: 'Expected text.',
  wrongPassword: 'The password is wrong.',
};

export type FaultKey = keyof typeof ENGLISH_FAULTS;
