/** Reads what rows are about, and writes them through the interface of every store, a few at a time. */
import { explain } from '../parts/form.js';
import { list, request, VigilError } from '../state/api.js';
import { language } from '../text/language.js';
import type { PlannedRow, Present } from './plan.js';

/** The service takes no more values of a filter. */
const IDS_AT_ONCE = 100;
const WRITES_AT_ONCE = 4;

const FIELDS = 'id,name,model,group,labels,description,config';

export async function readPresent(ids: readonly string[]): Promise<Map<string, Present>> {
  const found: Present[] = [];
  for (let start = 0; start < ids.length; start += IDS_AT_ONCE) {
    const where = { id: ids.slice(start, start + IDS_AT_ONCE) };
    found.push(...(await list<Present>('/objects', { where, only: FIELDS })));
  }
  return new Map(found.map((object) => [object.id, object]));
}

export interface WriteOutcome {
  readonly done: number;
  readonly refused: readonly { readonly row: PlannedRow; readonly reason: string }[];
}

/** Stops when the server is away: what comes after that is not tried, and said to be so by the error. */
export async function writeRows(
  rows: readonly PlannedRow[],
  onProgress: (outcome: WriteOutcome) => void,
  isLeft: () => boolean,
): Promise<WriteOutcome> {
  let outcome: WriteOutcome = { done: 0, refused: [] };
  let next = 0;
  let isBroken = false;
  const run = async (): Promise<void> => {
    for (let row = rows[next++]; row !== undefined && !isBroken && !isLeft(); row = rows[next++]) {
      try {
        await writeRow(row);
        outcome = { ...outcome, done: outcome.done + 1 };
      } catch (error) {
        if (!isRefusal(error)) {
          isBroken = true;
          throw error;
        }
        const refusal = { row, reason: await reasonOf(error) };
        outcome = { ...outcome, refused: [...outcome.refused, refusal] };
      }
      onProgress(outcome);
    }
  };
  const runs = await Promise.allSettled(Array.from({ length: WRITES_AT_ONCE }, run));
  const broken = runs.find((one) => one.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
  return outcome;
}

async function writeRow({ _id, body, fields, group }: PlannedRow): Promise<void> {
  if (_id === null) {
    await request('POST /api/v1/objects', { body: (group === null ? body : { ...body, group }) as never });
    return;
  }
  if (fields.some((field) => field !== 'group')) {
    await request('PATCH /api/v1/objects/{id}', { path: { id: _id }, body });
  }
  if (group !== null) await request('POST /api/v1/objects/{id}/move', { path: { id: _id }, body: { group } });
}

/** What the server says of this row; anything else happens to the others, too. */
const isRefusal = (error: unknown): error is VigilError =>
  error instanceof VigilError &&
  error.status >= 400 &&
  error.status < 500 &&
  error.status !== 401 &&
  error.status !== 429;

async function reasonOf(error: VigilError): Promise<string> {
  const { status, helper } = error;
  if (status === 403 || helper === null) return explain(error);
  const { splitHelper, toText } = await import('../text/server-messages.js');
  const [field, message] = splitHelper(helper) ?? [];
  return message === undefined ? helper : `${field}: ${toText(message, language.value)}`;
}
