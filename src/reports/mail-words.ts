/** The words of reports by mail, in the languages of the console. */
import type { ReportName } from '../core/report-kinds.js';
import type { MailLanguage } from '../core/scheduled-report.js';

interface Words {
  readonly titles: Readonly<Record<ReportName, string>>;
  /** Names of columns and of totals. */
  readonly columns: Readonly<Record<string, string>>;
  /** What a shift consists of, and values that mean something. */
  readonly values: Readonly<Record<string, string>>;
  readonly late: (due: string) => string;
  readonly nothing: string;
  readonly more: (count: string) => string;
  readonly cut: (count: string, reason: string) => string;
  readonly missing: (parts: string) => string;
  readonly attached: string;
  readonly tooLarge: (mebibytes: string) => string;
  readonly sender: (login: string, name: string) => string;
}

export const MAIL_WORDS: Readonly<Record<MailLanguage, Words>> = {
  en: {
    titles: {
      mileage: 'Mileage',
      trips: 'Trips',
      stops: 'Stops',
      geofences: 'Time in geofences',
      utilization: 'Utilization',
      shift: 'Shift',
    },
    columns: {
      name: 'Object',
      objects: 'Objects',
      rows: 'Rows',
      from: 'From',
      distance: 'Distance',
      trips: 'Trips',
      movingTime: 'Moving',
      stops: 'Stops',
      standingTime: 'Standing',
      maxSpeed: 'Top speed',
      duration: 'Duration',
      geofenceName: 'Geofence',
      visits: 'Visits',
      value: 'Value',
      share: 'Share',
      times: 'Times',
      kind: 'What',
      text: 'Text',
    },
    values: {
      alarm: 'Alarm',
      command: 'Command',
      note: 'Note',
      offline: 'Offline',
      true: 'yes',
      false: 'no',
      others: 'other values',
    },
    late: (due) => `This report is late: it was due on ${due}.`,
    nothing: 'There is nothing in this interval.',
    more: (count) => `… and ${count} more.`,
    cut: (count, reason) => `The report ends early: ${count} objects are missing (${reason}).`,
    missing: (parts) => `Left out, because its owner may not read it: ${parts}.`,
    attached: 'All rows are in the attached file.',
    tooLarge: (mebibytes) => `All rows are more than ${mebibytes} MiB, too much for a mail: open the report in Vigil.`,
    sender: (login, name) => `${login} has scheduled this report, “${name}”, for you.`,
  },
  de: {
    titles: {
      mileage: 'Kilometer',
      trips: 'Fahrten',
      stops: 'Stopps',
      geofences: 'Zeit in Geofences',
      utilization: 'Auslastung',
      shift: 'Schicht',
    },
    columns: {
      name: 'Objekt',
      objects: 'Objekte',
      rows: 'Zeilen',
      from: 'Von',
      distance: 'Strecke',
      trips: 'Fahrten',
      movingTime: 'In Fahrt',
      stops: 'Stopps',
      standingTime: 'Im Stand',
      maxSpeed: 'Höchstgeschwindigkeit',
      duration: 'Dauer',
      geofenceName: 'Geofence',
      visits: 'Besuche',
      value: 'Wert',
      share: 'Anteil',
      times: 'Anzahl',
      kind: 'Was',
      text: 'Text',
    },
    values: {
      alarm: 'Alarm',
      command: 'Befehl',
      note: 'Notiz',
      offline: 'Offline',
      true: 'ja',
      false: 'nein',
      others: 'andere Werte',
    },
    late: (due) => `Dieser Bericht ist verspätet: Er war am ${due} fällig.`,
    nothing: 'In diesem Zeitraum ist nichts.',
    more: (count) => `… und ${count} weitere.`,
    cut: (count, reason) => `Der Bericht endet vorzeitig: ${count} Objekte fehlen (${reason}).`,
    missing: (parts) => `Das darf sein Eigentümer nicht lesen, deshalb fehlt es: ${parts}.`,
    attached: 'Alle Zeilen stehen in der angehängten Datei.',
    tooLarge: (mebibytes) =>
      `Alle Zeilen sind mehr als ${mebibytes} MiB, zu viel für eine Mail: Öffnen Sie den Bericht in Vigil.`,
    sender: (login, name) => `${login} hat diesen Bericht, „${name}“, für Sie eingeplant.`,
  },
};
