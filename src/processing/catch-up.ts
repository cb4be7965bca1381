/** Brings tenants from their positions up to the live feed: from the history, or if that is gone, from stored data. */
import type { Change, OpenHistory } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { isAfter, secondsOf } from '../core/position.js';
import { startTurnClock } from '../live/turn-clock.js';
import { clock } from '../platform/clock.js';
import { type Holding, type Holdings, LIVE_FEED, type Progress, passTo, progressesOf, type Source } from './holding.js';
import type { Processor, Task } from './processor.js';

export interface CatchUpParts {
  /** A reader: what has it as its source is brought up. */
  readonly reader: Source;
  readonly holdings: Holdings;
  readonly openHistory: OpenHistory;
  readonly processors: readonly Processor[];
  /** The last change that the live feed has started to process. */
  readonly livePosition: () => string;
  /** Plans the change for what is read by the reader. */
  readonly plan: (change: Change) => void | Promise<void>;
  /** Adds tasks without a change for those that are where `isMeant` says. */
  readonly addRefill: (processor: number, tasks: readonly Task[], isMeant: (progress: Progress) => boolean) => void;
  /** Resolves when there is room for more tasks. */
  readonly waitForRoom: () => void | Promise<void>;
  readonly wake: () => void;
  /** Called when the history of these partitions is gone. */
  readonly onRefill: (partitions: readonly number[], fromMs: number) => void;
  readonly now: () => number;
}

/** Resolves when all that the reader reads is live or lost. Throws when reading the history fails: the caller starts again with the rest. */
export async function catchUp(parts: CatchUpParts): Promise<void> {
  const first = findPlanned(parts)[0];
  if (first === undefined) return;
  const history = await parts.openHistory(first);
  if (history === null) {
    await refill(parts);
    // In one turn: a change between the look and the joining would be planned by nobody.
    return isWhereLive(parts) ? join(parts) : catchUp(parts);
  }
  const turn = startTurnClock();
  for await (const { changes, upTo } of history) {
    turn.resume();
    for (const change of changes) {
      if (isAfter(change.position, parts.livePosition())) return join(parts);
      await parts.plan(change);
      await parts.waitForRoom();
      if (!isNeeded(parts)) return;
      await turn.yieldIfLong();
    }
    if (!isAfter(parts.livePosition(), upTo)) return join(parts);
    for (const one of readBy(parts)) passTo(one, upTo);
    if (!isNeeded(parts)) return;
    turn.pause();
  }
}

type Reading = Pick<CatchUpParts, 'reader' | 'holdings'>;

const isLost = ({ owned }: Holding): boolean => owned.lost.aborted;

/** Whether anything has the reader as its source. */
export function isNeeded({ reader, holdings }: Reading): boolean {
  for (const holding of holdings.values()) {
    if (isLost(holding)) continue;
    if (holding.rest.source === reader) return true;
    for (const { source } of holding.queues.values()) if (source === reader) return true;
  }
  return false;
}

const readBy = ({ reader, holdings }: Reading): Progress[] =>
  [...holdings.values()]
    .filter((holding) => !isLost(holding))
    .flatMap(progressesOf)
    .filter(({ source }) => source === reader);

/** Takes effect at once: the live feed plans every later change for them. */
function join(reading: Reading): void {
  for (const one of readBy(reading)) one.source = LIVE_FEED;
}

/** Up to where they were planned, the earliest first. */
const findPlanned = (reading: Reading): readonly string[] =>
  [...new Set(readBy(reading).map(({ planned }) => planned))].sort((a, b) => (isAfter(b, a) ? -1 : 1));

/** The last position that the history does not have. */
async function findLost({ openHistory }: CatchUpParts, planned: readonly string[]): Promise<string> {
  for (const [index, position] of planned.entries()) {
    const history = index === 0 ? null : await openHistory(position);
    if (history === null) continue;
    // A generator closes its cursor only if it was started.
    for await (const _ of history) break;
    return planned[index - 1] as string;
  }
  return planned.at(-1) as string;
}

/** Whether all are where the live feed is. The history may be gone up to there, where nothing has happened for long. */
const isWhereLive = (parts: CatchUpParts): boolean =>
  readBy(parts).every(({ planned }) => !isAfter(parts.livePosition(), planned));

/** Adds tasks made from data stored since the positions of those whose history is gone: they continue with what comes now. */
async function refill(parts: CatchUpParts): Promise<void> {
  const position = parts.livePosition();
  const planned = findPlanned(parts);
  const [first] = planned;
  if (first === undefined) return;
  const lost = await findLost(parts, planned);
  const isMeant = (progress: Progress): boolean => progress.source === parts.reader && !isAfter(progress.planned, lost);
  const partitions = [...parts.holdings.values()]
    .filter((holding) => !isLost(holding) && progressesOf(holding).some(isMeant))
    .map(({ owned }) => owned.index);
  const positionMs = secondsOf(first) * 1_000;
  // Packets get their time before they are stored, from another clock.
  const fromMs = positionMs - LIMITS.refillMarginMs;
  const toMs = parts.now() + LIMITS.refillMarginMs;
  parts.onRefill(partitions, positionMs);
  for (const [index, processor] of parts.processors.entries()) {
    for await (const tasks of processor.refill(partitions, { fromMs, toMs, position })) {
      parts.addRefill(index, tasks, isMeant);
      parts.wake();
      await parts.waitForRoom();
      if (!isNeeded(parts)) return;
    }
  }
  for (const one of readBy(parts)) if (isMeant(one)) one.planned = position;
}

/** Waits a moment for tasks to be committed. */
export const waitForCommits = (): Promise<void> => clock.wait(LIMITS.historyWaitMs, { ref: false });
