/** An operation of the interface as the tables have it. */
import type { ErrorStatus } from '../errors.js';
import type { Part } from './part.js';

export interface Operation {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With parameters in braces. */
  readonly path: string;
  /** Its name in programs that are generated from the document. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  /** Names of query parameters. */
  readonly query?: readonly string[];
  /** Schemas by media type. */
  readonly body?: Readonly<Record<string, Part>>;
  readonly isBodyRequired?: boolean;
  readonly answer: { readonly says: string; readonly content: Readonly<Record<string, Part>> };
  /** Headers of the answer beside those that every answer has. */
  readonly headers?: readonly string[];
  /** Beside those that every operation can end with. */
  readonly errors: readonly ErrorStatus[];
  /** Whither a request that was not quite right is sent. */
  readonly moved?: string;
  /** Needs no login. */
  readonly isOpen?: boolean;
}
