/** What all steps of the compression need. */
import type { Mover } from './moves.js';
import type { Compression } from './state.js';

/** The owner at work. */
export interface Work extends Mover {
  /** Aborted when the work has to end. */
  readonly signal: AbortSignal;
  /** Aborted when another instance may have taken over. */
  readonly lost: AbortSignal;
  /** Called after each step forward. */
  readonly onProgress: (state: Pick<Compression, 'stage' | 'copied' | 'total'>, behindMs: number) => void;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
}
