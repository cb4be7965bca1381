/** Starts the jobs on the database: expiry of commands, removal of packets, packing of history, and reports by mail. */
import { type Accounts, findScopeObjects } from './accounts/accounts.js';
import type { Audit } from './accounts/audit.js';
import { type ExpiryOptions, startExpiry } from './commands/expiry.js';
import type { Config } from './config.js';
import { createMailCheck } from './notifications/channels.js';
import { type PackingOptions, startPacking } from './packets/packing.js';
import { noteRemoval, type RemovalOptions, type Removals, startRemovals, toFields } from './packets/removals.js';
import { type SweeperOptions, startSweeper } from './packets/retention.js';
import { type SchedulerOptions, startScheduler } from './reports/scheduler.js';

type Logs = SweeperOptions['log'] &
  ExpiryOptions['log'] &
  RemovalOptions['log'] &
  PackingOptions['log'] &
  SchedulerOptions['log'];

export interface JobOptions extends Omit<SweeperOptions & PackingOptions, 'log'> {
  readonly audit: Audit;
  readonly accounts: Accounts;
  readonly config: Pick<Config, 'notifications'>;
  readonly log: (module: string) => Logs;
}

export interface Jobs {
  readonly requestRemoval: Removals['request'];
  stop(): Promise<unknown>;
}

export function startJobs({ log, audit, accounts, config, ...options }: JobOptions): Jobs {
  const onRemoved: RemovalOptions['onRemoved'] = async ({ _id, objectId, by, ...interval }, packets) => {
    const fields = [...toFields(interval), `packets=${packets}`];
    await audit.recordOnce(_id, { action: 'packets removed', ...by, entityId: objectId, fields });
    // This tells those who follow the object that its state may be another one.
    await noteRemoval(options.database, objectId, options.now());
  };
  const removals = startRemovals({ database: options.database, onRemoved, log: log('removals') });
  const parts = [
    startExpiry({ ...options, log: log('expiry') }),
    startSweeper({ ...options, log: log('sweeper') }),
    startPacking({ ...options, log: log('packing') }),
    startScheduler({
      ...options,
      findAccount: accounts.findAccount,
      findScopeObjects: (scopes) => findScopeObjects(options.database, scopes),
      assertSendsMail: createMailCheck(config.notifications),
      publicUrl: config.notifications.publicUrl,
      log: log('reports'),
    }),
    removals,
  ];
  return { requestRemoval: removals.request, stop: () => Promise.all(parts.map((part) => part.stop())) };
}
