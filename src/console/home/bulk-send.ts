/** Sends the requests of a change of many objects, one after the other, and says which objects were refused, and why. */
import { request } from '../state/api.js';
import { language, t } from '../text/language.js';
import type { BulkRequest } from './bulk.js';

export interface Refused {
  readonly id: string;
  readonly reason: string;
}

interface Outcome {
  /** Of how many objects it was asked. */
  readonly count: number;
  readonly done: number;
  readonly refused: readonly Refused[];
}

export async function sendAll(requests: readonly BulkRequest[], isDryRun: boolean): Promise<Outcome> {
  let done = 0;
  const failed: Failure[] = [];
  for (const one of requests) {
    const answer = await send(one, isDryRun);
    done += answer.done;
    failed.push(...(answer.failed as unknown as Failure[]));
    // An object that is gone meanwhile is not among those that the filter selects.
    const missing = one.ids.length - answer.count;
    if (missing > 0) failed.push(...Array.from({ length: missing }, () => ({ _id: t('bulk.gone'), code: '404' })));
  }
  const count = requests.reduce((sum, { ids }) => sum + ids.length, 0);
  return { count, done, refused: await Promise.all(failed.map(toRefused)) };
}

function send(one: BulkRequest, isDryRun: boolean) {
  const query = { where: { _id: one.ids }, dryRun: isDryRun ? ('true' as const) : ('false' as const) };
  return 'group' in one
    ? request('POST /api/v1/groups/{id}/objects', { path: { id: one.group }, query })
    : request('PATCH /api/v1/objects', { query, body: one.body });
}

interface Failure {
  readonly _id: string;
  readonly code: string;
  readonly helper?: { readonly message: string };
}

async function toRefused({ _id, code, helper }: Failure): Promise<Refused> {
  if (helper === undefined) return { id: _id, reason: t(code === '404' ? 'bulk.gone' : 'error.forbidden') };
  const { splitHelper, toText } = await import('../text/server-messages.js');
  const message = splitHelper(helper.message)?.[1] ?? helper.message;
  return { id: _id, reason: toText(message, language.value) };
}
