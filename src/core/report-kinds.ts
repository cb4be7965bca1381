/** The kinds of reports: the last part of their addresses. */
export const REPORT_KINDS = ['mileage', 'trips', 'stops', 'geofences', 'utilization', 'shift'] as const;

export type ReportName = (typeof REPORT_KINDS)[number];

export const isReport = (name: string | undefined): name is ReportName =>
  (REPORT_KINDS as readonly (string | undefined)[]).includes(name);
