/** The error type of the service, its constructors, and the conversion of any thrown value to it. */

export interface ErrorBody {
  success: false;
  code: string;
  message: string;
  tags: string[];
  helper?: { message: string };
  [detail: string]: unknown;
}

/** By status; each message is the standard reason phrase. */
const KINDS = {
  400: { message: 'Bad Request', tags: ['error_bad_request'] },
  401: { message: 'Unauthorized', tags: ['error_unauthorized'] },
  403: { message: 'Forbidden', tags: ['error_credentials', 'error_forbidden'] },
  404: { message: 'Not Found', tags: ['error_not_found'] },
  405: { message: 'Method Not Allowed', tags: ['error_method_not_allowed'] },
  409: { message: 'Conflict', tags: ['error_conflict'] },
  413: { message: 'Payload Too Large', tags: ['error_too_large'] },
  415: { message: 'Unsupported Media Type', tags: ['error_unsupported_media_type'] },
  429: { message: 'Too Many Requests', tags: ['error_too_many_requests'] },
  500: { message: 'Internal Server Error', tags: ['error_internal'] },
  503: { message: 'Service Unavailable', tags: ['error_unavailable'] },
} as const;

export type ErrorStatus = keyof typeof KINDS;

/** Every status of an error answer, with its message and tags. The table of docs/reference/errors.md is tested against it. */
export const ERROR_KINDS: Readonly<Record<ErrorStatus, { message: string; tags: readonly string[] }>> = KINDS;

interface ErrorOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** An error that a client may see: its status, a hint for people, its headers, and further fields of its body. */
export class ApiError extends Error {
  readonly status: ErrorStatus;
  readonly help: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: ErrorStatus, help?: string, options: ErrorOptions = {}) {
    super(help ?? KINDS[status].message, { cause: options.cause });
    this.name = 'ApiError';
    this.status = status;
    this.help = help;
    this.headers = options.headers ?? {};
    this.details = options.details ?? {};
  }
}

/** 400: `why` names the field and what was expected. */
export const badRequest = (why: string): ApiError => new ApiError(400, why);
export const unauthorized = (): ApiError => new ApiError(401);
export const forbidden = (why?: string): ApiError => new ApiError(403, why);
/** 404 has no details, so that clients cannot distinguish missing entities from invisible ones. */
export const notFound = (): ApiError => new ApiError(404);
/** 404 of an address that nobody has, which says where to send instead. */
export const wrongAddress = (help: string): ApiError => new ApiError(404, help);
export const methodNotAllowed = (allowed: readonly string[]): ApiError =>
  new ApiError(405, `allowed here: ${allowed.join(', ')}`, { headers: { Allow: allowed.join(', ') } });
export const conflict = (why: string): ApiError => new ApiError(409, why);
export const tooLarge = (why: string): ApiError => new ApiError(413, why);
export const unsupportedMediaType = (why: string): ApiError => new ApiError(415, why);
export const tooManyRequests = (retryAfterS: number, why?: string): ApiError =>
  new ApiError(429, why, { headers: { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterS))) } });
/** 503: the database is unavailable or the service is overloaded; `why` says what is known about the outcome of a write. */
export const unavailable = (why?: string, cause?: unknown, retryAfterS = 1): ApiError =>
  new ApiError(503, why, { headers: { 'Retry-After': String(retryAfterS) }, cause });

/** An error of the framework for a bad request (http-errors: `status`, `type`). */
interface FrameworkError {
  status?: unknown;
  type?: unknown;
}

/** Converts any thrown value to an ApiError. Unexpected errors become a 500 without details, with the error as its cause. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { status, type } = (typeof error === 'object' && error !== null ? error : {}) as FrameworkError;
  if (type === 'entity.parse.failed') return badRequest('the body is not valid JSON');
  if (type === 'entity.too.large')
    return tooLarge('the body is larger than this path accepts (docs/reference/limits.md)');
  if (status === 415) return unsupportedMediaType('the body must be plain UTF-8 JSON, not compressed');
  if (status === 413) return tooLarge('the request is too large');
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return badRequest('the request is malformed');
  }
  return new ApiError(500, undefined, { cause: error });
}

/** `code` is the status as text. */
export function errorBody(error: ApiError): ErrorBody {
  const { message, tags } = KINDS[error.status];
  const body: ErrorBody = { success: false, code: String(error.status), message, tags: [...tags] };
  if (error.help !== undefined && error.status !== 500) body.helper = { message: error.help };
  return Object.assign(body, error.details);
}
