/** What a change of many objects asks of the service: requests by what they set, of objects that do not have it yet. */

/** What decides whether an object is as wanted already. */
interface BulkObject {
  readonly _id: string;
  readonly group: string;
  readonly model: string;
  readonly labels?: unknown;
  readonly config?: { readonly offlineAfter?: unknown } | null;
}

export const CHANGES = ['group', 'model', 'addLabel', 'removeLabel', 'offlineAfter'] as const;

/** What is changed, and to what; an empty `offlineAfter` removes it. */
export interface BulkChange {
  readonly kind: (typeof CHANGES)[number];
  readonly value: string;
}

/** Moves its objects to the group, or changes them by the body. */
export type BulkRequest = { readonly ids: readonly string[] } & (
  | { readonly group: string }
  | { readonly body: object }
);

/** The service takes no more values of a filter. */
const IDS_AT_ONCE = 100;

/** Objects that are already as wanted are left out. */
export function toRequests({ kind, value: given }: BulkChange, objects: readonly BulkObject[]): BulkRequest[] {
  const value = given.trim();
  if (kind === 'group')
    return inParts(idsOf(objects, ({ group }) => group !== value)).map((ids) => ({ ids, group: value }));
  if (kind === 'model')
    return toChanges(
      idsOf(objects, ({ model }) => model !== value),
      { model: value },
    );
  if (kind === 'offlineAfter') {
    const offlineAfter = value === '' ? null : value;
    const ids = idsOf(objects, ({ config }) => (config?.offlineAfter ?? null) !== offlineAfter);
    return toChanges(ids, { config: { offlineAfter } });
  }
  return toLabelChanges(objects, (labels) =>
    kind === 'addLabel' ? [...new Set([...labels, value])] : labels.filter((label) => label !== value),
  );
}

/** A change replaces the list of labels: one request for each list that comes of it. */
function toLabelChanges(
  objects: readonly BulkObject[],
  toNext: (labels: readonly unknown[]) => readonly unknown[],
): BulkRequest[] {
  const byList = new Map<string, string[]>();
  for (const { _id, labels } of objects) {
    const present = Array.isArray(labels) ? labels : [];
    const key = JSON.stringify(toNext(present));
    if (key !== JSON.stringify(present)) byList.set(key, [...(byList.get(key) ?? []), _id]);
  }
  return [...byList].flatMap(([key, ids]) => toChanges(ids, { labels: JSON.parse(key) }));
}

const idsOf = (objects: readonly BulkObject[], isOther: (object: BulkObject) => boolean): string[] =>
  objects.filter(isOther).map(({ _id }) => _id);

const toChanges = (ids: readonly string[], body: object): BulkRequest[] =>
  inParts(ids).map((part) => ({ ids: part, body }));

function inParts(ids: readonly string[]): string[][] {
  const parts: string[][] = [];
  for (let start = 0; start < ids.length; start += IDS_AT_ONCE) parts.push(ids.slice(start, start + IDS_AT_ONCE));
  return parts;
}
