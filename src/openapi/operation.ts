/** An operation in the tables of the OpenAPI document. */
import type { ErrorStatus } from '../core/errors.js';
import type { Part } from '../platform/http/schema.js';

export interface Operation {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With parameters in braces. */
  readonly path: string;
  /** The name in generated clients. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  /** Names of query parameters. */
  readonly query?: readonly string[];
  /** Schemas by media type. */
  readonly body?: Readonly<Record<string, Part>>;
  readonly isBodyRequired?: boolean;
  /** Of the body. */
  readonly example?: unknown;
  readonly answer: { readonly description: string; readonly content: Readonly<Record<string, Part>> };
  /** Response headers in addition to the common ones. */
  readonly headers?: readonly string[];
  /** Errors in addition to the common ones. */
  readonly errors: readonly ErrorStatus[];
  /** The description of a redirect, for paths with a missing slash. */
  readonly moved?: string;
  /** Whether the operation needs no authentication. */
  readonly isOpen?: boolean;
}
