// The process of an attacker: `attacker.js <name of an attack> <Attacker as JSON>`. Sends each kind of answer when it gets the first one, and
// the number of each kind when it is asked to end.
import type { Attacker } from './asking.js';
import { ATTACKS } from './attacks.js';

/** Messages to the process that started it. */
export type FromAttacker = { readonly first: string } | { readonly counts: Readonly<Record<string, number>> };

const [name, given] = process.argv.slice(2);
const attack = ATTACKS.find((one) => one.name === name);
if (attack === undefined || given === undefined) throw new Error(`no attack "${name}"`);

const send = (message: FromAttacker, then?: () => void): void => void process.send?.(message, undefined, {}, then);
const counts: Record<string, number> = {};
attack.run(JSON.parse(given) as Attacker, (status) => {
  counts[status] = (counts[status] ?? 0) + 1;
  if (counts[status] === 1) send({ first: String(status) });
});
process.once('message', () => send({ counts }, () => process.exit(0)));
process.once('disconnect', () => process.exit(1));
