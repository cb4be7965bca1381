/** The machine against a naive evaluator, which looks at the whole past again in every minute. */
import { expect, test } from '@jest/globals';
import { fc } from '../../support/runs.js';
import { run, type Sent, spansOf } from './support.js';

type Values = Readonly<Record<'a' | 'b', number | null>>;
interface Asked {
  readonly forMinutes: number;
  readonly clearMinutes: number;
  readonly combined: 'all' | 'any';
  readonly low: number | null;
}

const END = 40;

/** What a parameter was last, up to a minute. */
function lastOf(sent: readonly Sent[], minute: number, name: 'a' | 'b'): number | null {
  const values = sent.filter(([at]) => at <= minute).map(([, fields]) => fields[name]);
  return (values.findLast((value) => typeof value === 'number') as number | undefined) ?? null;
}

function isHot(sent: readonly Sent[], minute: number, { combined }: Asked): boolean | null {
  const parts = (['a', 'b'] as const).map((name) => {
    const value = lastOf(sent, minute, name);
    return value === null ? null : value > 5;
  });
  // A parameter that was never sent does not hold what another one has ended.
  if (combined === 'any') return parts.includes(true) ? true : parts.includes(false) ? false : null;
  return parts.includes(false) ? false : parts.includes(null) ? null : true;
}

function isOver(sent: readonly Sent[], minute: number, asked: Asked): boolean | null {
  const hot = isHot(sent, minute, asked);
  if (asked.low === null) return hot === null ? null : !hot;
  const value = lastOf(sent, minute, 'a');
  if (value === null) return null;
  return value < asked.low && hot !== true;
}

/** How long something has been so in a row, up to a minute and since a first one; what is not known changes nothing. */
function heldMinutes(isSo: (minute: number) => boolean | null, minute: number, first: number): number | null {
  let since: number | null = null;
  for (let one = first; one <= minute; one++) {
    const now = isSo(one);
    if (now === true) since ??= one;
    if (now === false) since = null;
  }
  return since === null ? null : minute - since;
}

function naive(sent: readonly Sent[], asked: Asked): (number | null)[][] {
  const spans: (number | null)[][] = [];
  let first = 0;
  for (let minute = 0; minute <= END; minute++) {
    const open = spans.at(-1)?.[1] === null ? spans.at(-1) : undefined;
    const isCalling = (one: number) => isHot(sent, one, asked) ?? (isOver(sent, one, asked) === true ? false : null);
    const isSo = (one: number) => (open === undefined ? isCalling(one) : isOver(sent, one, asked));
    const held = heldMinutes(isSo, minute, first);
    if (held === null || held < (open === undefined ? asked.forMinutes : asked.clearMinutes)) continue;
    if (open === undefined) spans.push([minute, null]);
    else open[1] = minute;
    first = minute;
  }
  return spans;
}

const value = fc.option(fc.integer({ min: 0, max: 9 }));
const packets = fc.uniqueArray(fc.record({ minute: fc.integer({ min: 0, max: END }), a: value, b: value }), {
  selector: ({ minute }) => minute,
  maxLength: 25,
});
const asked = fc.record<Asked>({
  forMinutes: fc.integer({ min: 0, max: 6 }),
  clearMinutes: fc.integer({ min: 0, max: 4 }),
  combined: fc.constantFrom('all', 'any'),
  low: fc.option(fc.integer({ min: 1, max: 5 })),
});

test('raises and clears exactly what the naive evaluator does', () => {
  const property = fc.property(packets, asked, (given, rule) => {
    const sent = [...given]
      .sort((one, other) => one.minute - other.minute)
      .map(({ minute, ...values }): Sent => [minute, values satisfies Values]);
    const hot = ['a', 'b'].map((param) => ({ param, op: '>', value: 5 }));
    const fields = {
      when: { [rule.combined]: hot },
      for: rule.forMinutes * 60_000,
      clearFor: rule.clearMinutes * 60_000,
      ...(rule.low !== null && { clear: { param: 'a', op: '<', value: rule.low } }),
    };
    expect(spansOf(run(fields, sent, { end: END }).alarms)).toEqual(naive(sent, rule));
  });
  fc.assert(property, { numRuns: 2_000 });
});
