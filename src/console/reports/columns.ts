/** The columns of reports, and how they are shown. */
import type { ReportName } from '../../core/report-kinds.js';
import { formatDateTime, formatNumber, type TextKey, t } from '../text/language.js';
import { formatDistance, formatSpeed } from '../text/measures.js';
import { formatSpan } from '../text/spans.js';
import type { Cell, Row } from './order.js';

export interface ReportAnswer {
  readonly rows: readonly Row[];
  readonly totals: Readonly<Record<string, number | null>> & { readonly rows: number; readonly objects: number };
  readonly cut: { readonly reason: string; readonly objects: number } | null;
}

export interface Column {
  readonly name: string;
  readonly title: TextKey;
  readonly isNumber: boolean;
  readonly show: (cell: Cell) => string;
}

type Kind = 'text' | 'time' | 'distance' | 'span' | 'speed' | 'count' | 'share' | 'value';

const SHOW: Readonly<Record<Kind, (cell: Cell) => string>> = {
  text: String,
  time: (cell) => formatDateTime(Number(cell)),
  distance: (cell) => formatDistance(Number(cell)),
  span: (cell) => formatSpan(Number(cell)),
  speed: (cell) => formatSpeed(Number(cell)),
  count: (cell) => formatNumber(Number(cell)),
  share: (cell) => formatNumber(Number(cell), { style: 'percent', maximumFractionDigits: 1 }),
  value: String,
};

const column = (name: string, kind: Kind): Column => ({
  name,
  title: `reports.${name}` as TextKey,
  isNumber: !['text', 'time', 'value'].includes(kind),
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
  ],
  stops: [FROM, TO, column('duration', 'span')],
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
};

const NAME: Column = { name: 'name', title: 'reports.object', isNumber: false, show: String };

/** Those of a kind; with the parts of the interval if it is divided. */
export const columnsOf = (kind: ReportName, isDivided: boolean): readonly Column[] => [
  NAME,
  ...(isDivided ? [FROM, TO] : []),
  ...OF_KIND[kind],
];
