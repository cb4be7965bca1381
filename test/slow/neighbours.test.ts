/** One tenant works beside the attacks of another one, and of clients without a login, on a process as it is started. */
import { ATTACKS } from '../../scripts/bench/neighbours/attacks.js';
import { testAttacks } from './attack-tests.js';

testAttacks({ nodeOptions: '', mostMib: 512, attacks: ATTACKS });
