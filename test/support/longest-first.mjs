/**
 * The order in which Jest starts test files. In a fresh clone it knows no durations and goes by the size of the files; small ones that
 * take long would run alone at the end.
 */
import Sequencer from '@jest/test-sequencer';

/** What takes more than 20 s on two idle cores, unless its size brings it to the front; the longest first. */
const LONGEST = [
  'slow/compose',
  'slow/bench-console',
  'slow/bench-workloads',
  'slow/neighbours',
  'slow/list-queue',
  'slow/webhook-failover',
  'slow/neighbours-small-heap',
  'slow/history-failover',
  'slow/console/server-outage',
  'slow/console/fleet-map',
  'slow/bench-webhooks',
  'http/half-closed',
  'http/large-bodies',
  'http/overload',
  'webhooks/oplog-gap',
  'webhooks/receiver-failures',
].map((name) => `/test/${name}.test.ts`);

function rankOf({ path }) {
  const at = LONGEST.findIndex((name) => path.endsWith(name));
  return at === -1 ? LONGEST.length : at;
}

export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => rankOf(one) - rankOf(other));
  }
}
