/** One tenant works beside the attacks that aim at the memory of the process, with a heap of 512 MiB. */
import { ATTACKS } from '../../scripts/bench/neighbours/attacks.js';
import { testAttacks } from './attack-tests.js';

testAttacks({
  nodeOptions: '--max-old-space-size=512',
  mostMib: 1_024,
  attacks: ATTACKS.filter(({ isHeavy }) => isHeavy),
});
