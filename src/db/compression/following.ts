/** Applies the changes of packets to the copy, while packets are stored and removed. */
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../model/limits.js';
import { type Move, mirror, type Range } from './moves.js';
import { advance, type Compression } from './state.js';
import { openTail, type Tail, type TailPage } from './tail.js';
import type { Work } from './work.js';

/** Runs with the changes since the stored position. */
export async function withTail(
  work: Work,
  { stage, token }: Compression,
  run: (tail: Tail) => Promise<void>,
): Promise<void> {
  const tail = await openTail(work.database, token, stage === 'exchanging');
  try {
    await run(tail);
  } finally {
    await tail.close();
  }
}

/** Applies the changes that are there, up to a bound: others may be stored as fast. Returns the last of them. */
export async function follow(
  work: Work,
  move: Move,
  { tail, range }: { tail: Tail; range: Range | null },
): Promise<TailPage> {
  for (let pages = 1; ; pages++) {
    const page = await tail.read();
    await mirror(work, move, { touched: page.touched, range, progress: { token: page.token } });
    if (page.isLast || pages >= LIMITS.compressionFollowPages || work.signal.aborted) return page;
  }
}

/** Makes the copy the same where packets of the page are concerned. */
export const mirrorPage = (work: Work, move: Move, { touched, token }: TailPage): Promise<void> =>
  mirror(work, move, { touched, range: null, progress: { token } });

/** Applies all changes up to now. */
export async function drain(work: Work, tail: Tail, apply: (page: TailPage) => Promise<void>): Promise<void> {
  const marker = randomUUID();
  await advance(work.database, work.owner, { marker });
  while (!work.signal.aborted) {
    const page = await tail.read();
    await apply(page);
    if (page.markers.includes(marker)) return;
  }
}

/** Applies changes until those that come meanwhile are so few that they can be applied while inserts are refused. */
export async function catchUp(work: Work, move: Move, { tail, state }: { tail: Tail; state: Compression }) {
  for (let isNear = false; !isNear && !work.signal.aborted; ) {
    const startMs = performance.now();
    await drain(work, tail, async (page) => {
      await mirrorPage(work, move, page);
      work.onProgress(state, page.behindMs);
    });
    isNear = performance.now() - startMs < LIMITS.compressionStopMs / 2;
  }
}
