/** Connects the change stream to its consumers, in their order: caches, live events, requests that wait for commands, MQTT, sources, webhooks. */
import type { Logger } from 'pino';
import type { Caches } from './caches.js';
import type { CommandWaiters } from './commands/waiters.js';
import type { Change } from './core/change.js';
import type { Gateway } from './devices/gateway.js';
import type { Downlinks } from './downlinks/downlinks.js';
import type { Feed } from './live/feed.js';
import { createChangeConsumers } from './platform/mongo/changes/consumers.js';
import { startWatcher, type Watcher } from './platform/mongo/changes/watcher.js';
import { createWatcherClient } from './platform/mongo/driver/client.js';
import { mapDriverErrors } from './platform/mongo/driver/errors.js';
import { type Lifecycle, retryUntilAvailable } from './platform/ops/lifecycle.js';
import type { OpsServer } from './platform/ops/server.js';
import type { Settings } from './settings/settings-store.js';
import type { Workers } from './workers.js';

export interface WatchingDeps {
  readonly uri: string;
  readonly log: Logger;
  readonly now: () => number;
  readonly caches: Caches;
  readonly feed: Feed;
  readonly commandWaiters: CommandWaiters;
  readonly gateway: Gateway;
  readonly downlinks: Downlinks;
  readonly workers: Workers;
  readonly settings: Settings;
  readonly ops: OpsServer;
  readonly onUnavailable: (error: unknown) => void;
  /** For tests: called after every consumer has received the change. */
  readonly onChange?: ((change: Change) => void) | undefined;
}

/** Starts the watcher. Waits for the database while it is unavailable. */
export async function startWatching(deps: WatchingDeps, lifecycle: Lifecycle): Promise<Watcher> {
  const { feed, gateway, downlinks, caches, commandWaiters, workers, settings, ops, now } = deps;
  const client = createWatcherClient(deps.uri);
  lifecycle.onShutdown(() => client.close());
  const log = deps.log.child({ module: 'watcher' });
  const publish = async (change: Change) => ops.metrics.published(change, await feed.publish(change));
  const consume = createChangeConsumers([
    caches.apply,
    settings.apply,
    publish,
    commandWaiters.apply,
    gateway.apply,
    downlinks.apply,
    workers.apply,
  ]);
  const onChange = async (change: Change): Promise<void> => {
    await consume(change);
    deps.onChange?.(change);
  };
  const onGap = (): void => {
    caches.invalidateAll();
    settings.reset();
    commandWaiters.wakeAll();
    gateway.reset();
    downlinks.reset();
    workers.reset();
  };
  const onSkipped = (): void => {
    caches.invalidateAll();
    feed.forget();
  };
  const onStart = (position: string): void => {
    feed.begin(position);
    workers.begin(position);
  };
  const start = () => startWatcher({ client, log, now, onStart, onBatch: feed.prepare, onChange, onGap, onSkipped });
  const waiting = { signal: lifecycle.ending, onUnavailable: deps.onUnavailable };
  const watcher = await retryUntilAvailable(() => mapDriverErrors(start, null), waiting);
  lifecycle.onShutdown(() => watcher.stop());
  await retryUntilAvailable(settings.load, waiting);
  downlinks.start();
  lifecycle.onShutdown(() => downlinks.stop());
  await retryUntilAvailable(workers.start, waiting);
  lifecycle.onShutdown(() => workers.stop());
  return watcher;
}
