/** The process of an attacker: `attacker.ts <nth of ATTACKS> <Attacker as JSON>`. Says that it has begun, and what it was answered. */
import type { Attacker } from './asking.js';
import { ATTACKS } from './attacks.js';

const [nth, given] = process.argv.slice(2);
const attack = ATTACKS[Number(nth)];
if (attack === undefined || given === undefined) throw new Error('which attack, and by whom?');

const statuses: Record<string, number> = {};
attack.run(JSON.parse(given) as Attacker, (status) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
});
// What reads nothing keeps no process.
setInterval(() => undefined, 1_000);
console.log('begun');
process.once('SIGTERM', () => {
  console.log(`answered ${JSON.stringify(statuses)}`);
  process.exit(0);
});
