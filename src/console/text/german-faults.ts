/** What may be wrong with a field, in German. */
import type { FaultKey } from './english-faults.js';

export const GERMAN_FAULTS: Readonly<Record<FaultKey, string>> = {
  atLeast: 'Erwartet werden mindestens {count} Zeichen.',
  atMost: 'Erwartet werden höchstens {count} Zeichen.',
  characters: 'Darf weder #, / noch Steuerzeichen enthalten.',
  choice: 'Erwartet wird einer der erlaubten Werte.',
  commandId: 'Braucht höchstens 64 Zeichen, ohne Leerraum, /, + und #.',
  duration: 'Erwartet wird eine Dauer von 1 s bis 366 Tagen, etwa 10 min.',
  email: 'Erwartet wird eine E-Mail-Adresse.',
  fewer: 'Erwartet wird weniger als {count}.',
  format: 'Erwartet wird das Format „{count}“.',
  integer: 'Erwartet wird eine ganze Zahl.',
  least: 'Erwartet wird mindestens {count}.',
  more: 'Erwartet wird mehr als {count}.',
  most: 'Erwartet wird höchstens {count}.',
  number: 'Erwartet wird eine Zahl.',
  ownId: 'Darf nicht *, leer oder 24 Hexadezimalziffern sein.',
  parameterId: 'Braucht höchstens 64 Zeichen, ohne Leerraum.',
  pattern: 'Erwartet wird die Form {count}.',
  request: 'Erwartet werden Methode und Pfad je Zeile, etwa GET /objects/*.',
  required: 'Diese Angabe fehlt.',
  taken: 'Das ist schon vergeben.',
  text: 'Erwartet wird Text.',
  wrongPassword: 'Das Passwort ist falsch.',
};
