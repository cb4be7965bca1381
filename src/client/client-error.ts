/** The one error of the client: what the service answered, or that it did not answer. */

/** What an error answer says; of a request without an answer only the message is known. */
export interface ErrorDetails {
  readonly status: number;
  readonly message: string;
  readonly tags?: readonly string[];
  readonly helper?: string | null;
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

export class VigilError extends Error {
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number;
  readonly tags: readonly string[];
  /** An explanation for people, such as the name of the invalid field. */
  readonly helper: string | null;
  /** Finds the request in the log of the service. */
  readonly requestId: string | null;
  /** How long the service asks to wait before the next attempt. */
  readonly retryAfterMs: number | null;

  constructor(details: ErrorDetails) {
    const { status, message, helper = null } = details;
    const text = helper === null ? message : `${message}: ${helper}`;
    super(status === 0 ? text : `${status} ${text}`, { cause: details.cause });
    this.name = 'VigilError';
    this.status = status;
    this.tags = details.tags ?? [];
    this.helper = helper;
    this.requestId = details.requestId ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

/** The error that an answer is. */
export async function toVigilError(response: Response): Promise<VigilError> {
  const text = await response.text().catch(() => '');
  const body = toObject(text);
  const helper = toObject(body.helper).message;
  const { status, headers } = response;
  return new VigilError({
    status,
    // A proxy answers with pages of its own.
    message: typeof body.message === 'string' ? body.message : response.statusText || 'Error',
    tags: Array.isArray(body.tags) ? body.tags.map(String) : [],
    helper: typeof helper === 'string' ? helper : null,
    requestId: headers.get('x-request-id'),
    retryAfterMs: toRetryAfterMs(headers.get('retry-after')),
  });
}

/** The error of a request that was not answered. */
export function toNetworkError(error: unknown, address: string): VigilError {
  const { cause, message } = error as Error;
  const { message: reason, code } = (cause ?? {}) as { message?: string; code?: string };
  return new VigilError({
    status: 0,
    message: `No answer from ${address}: ${reason || code || message}`,
    cause: error,
  });
}

function toObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'string') return typeof value === 'object' && value !== null ? { ...value } : {};
  try {
    return toObject(JSON.parse(value) as object);
  } catch {
    return {};
  }
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function toRetryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const waitMs = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : null;
}
