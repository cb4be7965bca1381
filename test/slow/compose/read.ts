/** Reads through a proxy that may just have closed the connection, or may not have found an instance yet. */
import { type ApiAnswer, callApi } from '../../support/api-call.js';
import { until } from '../../support/until.js';

const READ_TIMEOUT_MS = 480_000;

/** The first answer that is not a 503. */
export async function read(url: string, token: string | null, path: string): Promise<ApiAnswer> {
  let answer: ApiAnswer | null = null;
  const isAnswered = async () => {
    answer = await callApi(url, token, 'GET', path).catch(() => null);
    return answer !== null && answer.status !== 503;
  };
  await until(isAnswered, `an answer to GET ${path}`, READ_TIMEOUT_MS, 100);
  return answer as unknown as ApiAnswer;
}
