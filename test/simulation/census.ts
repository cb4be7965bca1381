/** Which outcomes runs have reached: a simulation whose steps drift away from what is hard finds nothing, and looks well. */

export type Census = Map<string, number>;

/** What a thousand runs must have reached. */
export const WANTED: readonly string[] = [
  'client: gap, history gone',
  'client: resumes',
  'client: 401',
  'client: 503',
  'command: expired as queued',
  'command: expired as sent',
  'command: released',
  'command: sent again',
  'command: taken over',
  'command device: disconnected',
  'command device: refuses',
  'command device: result 200',
  'command device: result 409',
  'database: election',
  'database: rollback',
  'database: reply lost',
  'database: strike delay after commit',
  'database: strike elect after write',
  'database: strike freeze before begin',
  'database: strike freeze before commit',
  'database: strike freeze after commit',
  'database: strike lose after write',
  'device: disconnected',
  'device: 503',
  'device: packets that were stored before',
  'log: change stream failed: resuming it',
  'log: change stream cannot be resumed: live events before now are lost',
  'log: failed to send missed events: clients have to reconnect',
  'log: marked the devices of an ended instance offline',
  'looker: got commands',
  'node: frozen',
  'node: killed',
  'object: create',
  'object: remove',
  'presence: reported offline',
  'presence: reported online',
  'rights: gained',
  'rights: lost',
  'receiver: refuses',
  'receiver: hangs',
  'receiver: fails',
  'receiver: busy',
  'receiver: redirects',
  'receiver: loses answers',
  'receiver: late',
  'sender: 200',
  'sender: 401',
  'sender: 404',
  'sender: ended 200',
  'sender: no answer',
  'webhook: delivered after a takeover',
  'webhook: failed',
  'webhook: withheld',
  'webhooks: breaker opened',
  'workers: history refilled',
];

export function addTo(census: Census, more: Census): void {
  for (const [name, count] of more) census.set(name, (census.get(name) ?? 0) + count);
}

export const missingIn = (census: Census): string[] => WANTED.filter((name) => !census.has(name));
