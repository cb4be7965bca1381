/** The columns of reports, and how they are shown. */
import type { ReportName } from '../../core/report-kinds.js';
import { formatDate, formatNumber, type TextKey, t } from '../text/language.js';
import { formatDistance, formatSpeed } from '../text/measures.js';
import { formatSpan } from '../text/spans.js';
import type { Cell, Row } from './order.js';

export type ShiftPart = 'alarms' | 'commands' | 'notes' | 'packets' | 'users';

export interface ReportAnswer {
  readonly rows: readonly Row[];
  readonly totals: Readonly<Record<string, number | null>> & { readonly rows: number; readonly objects: number };
  readonly cut: { readonly reason: string; readonly objects: number } | null;
  /** Of a shift: what the caller may not read. */
  readonly missing?: readonly ShiftPart[];
}

export interface Column {
  readonly name: string;
  readonly title: TextKey;
  readonly isNumber: boolean;
  readonly show: (cell: Cell) => string;
  /** Whether its text may have many words, which take several lines. */
  readonly isLong?: boolean;
  /** Whether it is a place on the map: longitude and latitude. */
  readonly isPlace?: boolean;
}

type Kind =
  | 'text'
  | 'time'
  | 'distance'
  | 'span'
  | 'speed'
  | 'count'
  | 'share'
  | 'value'
  | 'place'
  | 'happening'
  | 'status'
  | 'severity';

const SHOW: Readonly<Record<Kind, (cell: Cell) => string>> = {
  text: String,
  time: (cell) => formatDate(Number(cell), { dateStyle: 'medium', timeStyle: 'short' }),
  distance: (cell) => formatDistance(Number(cell)),
  span: (cell) => formatSpan(Number(cell)),
  speed: (cell) => formatSpeed(Number(cell)),
  count: (cell) => formatNumber(Number(cell)),
  share: (cell) => formatNumber(Number(cell), { style: 'percent', maximumFractionDigits: 1 }),
  value: (cell) => (cell === 'true' || cell === 'false' ? t(`value.${cell}`) : String(cell)),
  happening: (cell) => t(`reports.happened.${cell}` as TextKey),
  status: (cell) => t(`reports.status.${cell}` as TextKey),
  severity: (cell) => t(`severity.${cell}` as TextKey),
  place: (cell) => {
    const [lon = 0, lat = 0] = cell as readonly number[];
    return `${lat.toFixed(5)}, ${lon.toFixed(5)}`;
  },
};

const column = (name: string, kind: Kind): Column => ({
  name,
  title: `reports.${name}` as TextKey,
  isNumber: ['distance', 'span', 'speed', 'count', 'share'].includes(kind),
  isPlace: kind === 'place',
  show: (cell) =>
    cell !== null && cell !== undefined ? SHOW[kind](cell) : kind === 'value' ? t('reports.others') : '',
});

const FROM = column('from', 'time');
const TO = column('to', 'time');

const OF_KIND: Readonly<Record<ReportName, readonly Column[]>> = {
  mileage: [
    column('distance', 'distance'),
    column('trips', 'count'),
    column('movingTime', 'span'),
    column('stops', 'count'),
    column('standingTime', 'span'),
    column('maxSpeed', 'speed'),
  ],
  trips: [
    FROM,
    TO,
    column('duration', 'span'),
    column('distance', 'distance'),
    column('averageSpeed', 'speed'),
    column('maxSpeed', 'speed'),
    column('start', 'place'),
    column('end', 'place'),
  ],
  stops: [FROM, TO, column('duration', 'span'), column('place', 'place')],
  geofences: [
    column('geofenceName', 'text'),
    column('visits', 'count'),
    column('duration', 'span'),
    column('arrival', 'time'),
    column('departure', 'time'),
  ],
  utilization: [
    column('value', 'value'),
    column('duration', 'span'),
    column('share', 'share'),
    column('times', 'count'),
  ],
  shift: [
    { ...column('kind', 'happening'), title: 'reports.happening' },
    FROM,
    TO,
    column('severity', 'severity'),
    column('status', 'status'),
    column('login', 'text'),
    column('acknowledged', 'time'),
    { ...column('text', 'text'), isLong: true },
  ],
};

const plainColumn = (name: string, title: TextKey): Column => ({ name, title, isNumber: false, show: String });

const NAME = plainColumn('name', 'reports.object');
const ID = plainColumn('id', 'welcome.id');

const DAY: Intl.DateTimeFormatOptions = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' };

/** The parts of an interval that is divided, by what `every` asks for. A part at its ends may be shorter. */
const PARTS: Readonly<Record<string, Column>> = {
  '1 day': { ...FROM, title: 'reports.day', show: (cell) => formatDate(Number(cell), DAY) },
  '1 week': { ...FROM, title: 'reports.weekFrom', show: (cell) => formatDate(Number(cell), DAY) },
  '1 month': {
    ...FROM,
    title: 'reports.month',
    show: (cell) => formatDate(Number(cell), { month: 'long', year: 'numeric' }),
  },
};

function partsOf(every: string | undefined): readonly Column[] {
  if (!every) return [];
  const part = PARTS[every];
  return part === undefined ? [FROM, TO] : [part];
}

/** Those of a kind; with the parts of the interval if it is divided, and the ids of objects where they say more than names. */
export const columnsOf = (kind: ReportName, every: string | undefined, hasIds: boolean): readonly Column[] => [
  NAME,
  ...(hasIds ? [ID] : []),
  ...partsOf(every),
  ...OF_KIND[kind],
];
