/** Applies the changes of packets to the copy, while packets are stored and removed. */
import { randomUUID } from 'node:crypto';
import { type Move, mirror } from './moves.js';
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

/** Applies the changes that are there. */
export async function follow(
  work: Work,
  move: Move,
  { tail, until }: { tail: Tail; until: Compression['from'] },
): Promise<void> {
  for (let isLast = false; !isLast && !work.signal.aborted; ) {
    const page = await tail.read();
    isLast = page.isLast;
    await mirror(work, move, { touched: page.touched, until, progress: { token: page.token } });
  }
}

/** Makes the copy the same where packets of the page are concerned. */
export const mirrorPage = (work: Work, move: Move, { touched, token }: TailPage): Promise<void> =>
  mirror(work, move, { touched, until: null, progress: { token } });

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
