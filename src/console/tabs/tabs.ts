/** What only those need who have the console open in several tabs. */
export { follow } from './follow.js';
export { createRelay } from './relay.js';
