/**
 * Streams of whole numbers: as they are, or their differences, or the differences of these, whichever takes the fewest bits. A
 * regular clock is all zeros in the last form.
 */
import { BLOCK, BLOCK_FLAG, type BlockPlan, planBlock, readBlock, writeBlock } from './bits.js';
import { type ByteReader, type ByteWriter, DamageError, toSigned, toUnsigned, WHOLE_MAX } from './bytes.js';

/** The blocks are left out: all differences are zero. */
const ALL_ZERO = 4;
const ORDERS = 3;

interface Block {
  readonly values: Float64Array;
  readonly plan: BlockPlan;
  /** What was subtracted from each value; null where signs were moved to the lowest bit. */
  readonly least: number | null;
}

interface Attempt {
  readonly order: number;
  readonly blocks: readonly Block[];
  readonly bits: number;
}

/** Writes numbers of at most `WHOLE_MAX`, positive or negative. Their count is known to the reader. */
export function writeIntegers(out: ByteWriter, values: Float64Array): void {
  if (values.length === 0) return;
  const best = findBest(values);
  const first = values[0] as number;
  const isZero = best.bits === 0;
  out.byte(best.order | (isZero ? ALL_ZERO : 0));
  if (best.order > 0) out.signed(first);
  if (best.order > 1 && values.length > 1) out.signed((values[1] as number) - first);
  if (isZero) return;
  for (const { values: block, plan, least } of best.blocks) {
    const between = least === null ? {} : { between: () => out.signed(least) };
    writeBlock(out, block, { width: plan.width, flag: least === null ? 0 : BLOCK_FLAG, ...between });
  }
}

function findBest(values: Float64Array): Attempt {
  let best: Attempt | null = null;
  let differences: Float64Array | null = values;
  for (let order = 0; order < ORDERS && differences !== null; order++) {
    if (order > 0) differences = differencesOf(differences);
    if (differences === null) break;
    const blocks = toBlocks(differences);
    const bits = blocks.reduce((sum, { plan, least }) => sum + plan.bits + (least === null ? 0 : LEAST_BITS), 0);
    if (best === null || bits < best.bits) best = { order, blocks, bits };
    if (bits === 0) break;
  }
  return best as Attempt;
}

const LEAST_BITS = 16;

/** Those from the second number on; null if one of them is too large. The reader knows the first. */
function differencesOf(values: Float64Array): Float64Array | null {
  const found = new Float64Array(Math.max(0, values.length - 1));
  for (let i = 0; i < found.length; i++) {
    const difference = (values[i + 1] as number) - (values[i] as number);
    if (Math.abs(difference) > WHOLE_MAX) return null;
    found[i] = difference;
  }
  return found;
}

function toBlocks(values: Float64Array): Block[] {
  const blocks: Block[] = [];
  for (let from = 0; from < values.length; from += BLOCK) {
    blocks.push(toBlock(values.subarray(from, Math.min(from + BLOCK, values.length))));
  }
  return blocks;
}

function toBlock(values: Float64Array): Block {
  const signed = new Float64Array(values.length);
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    signed[i] = toUnsigned(value);
    if (value < least) least = value;
  }
  const plan = planBlock(signed);
  if (plan.bits === 0) return { values: signed, plan, least: null };
  const raised = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) raised[i] = (values[i] as number) - least;
  const raisedPlan = planBlock(raised);
  return raisedPlan.bits + LEAST_BITS < plan.bits
    ? { values: raised, plan: raisedPlan, least }
    : { values: signed, plan, least: null };
}

export function readIntegers(reader: ByteReader, count: number): Float64Array {
  const values = new Float64Array(count);
  if (count === 0) return values;
  const form = reader.byte();
  const order = form & 3;
  if (order >= ORDERS || form > (ALL_ZERO | order)) throw new DamageError('an unknown form of numbers');
  const first = order > 0 ? reader.signed() : 0;
  const step = order > 1 && count > 1 ? reader.signed() : 0;
  if ((form & ALL_ZERO) === 0) {
    for (let from = order; from < count; from += BLOCK) {
      readSignedBlock(reader, values.subarray(from, Math.min(from + BLOCK, count)));
    }
  }
  if (order > 1) sum(values.subarray(1), step);
  if (order > 0) sum(values, first);
  return values;
}

function readSignedBlock(reader: ByteReader, values: Float64Array): void {
  let least: number | null = null;
  readBlock(reader, values, (flag) => {
    if (flag !== 0) least = reader.signed();
  });
  if (least === null) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number;
      // As integers of 32 bits where they are: the remainder of doubles is slow.
      values[i] = value < INT32_END ? (value >>> 1) ^ -(value & 1) : toSigned(value);
    }
  } else for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) + least;
}

const INT32_END = 2 ** 31;

/** Replaces the differences by the numbers. */
function sum(values: Float64Array, first: number): void {
  let total = first;
  if (values.length > 0) values[0] = total;
  for (let i = 1; i < values.length; i++) {
    total += values[i] as number;
    values[i] = total;
  }
}
