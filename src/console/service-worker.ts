/**
 * What the browser runs while no page is open: it shows the alarms that come from the push service and opens them at a click. It also
 * keeps the page and its scripts, so that the console opens without a network and says that there is none. It is there once the user has
 * asked for notifications, or has installed the console as an app.
 */

/** Changes with each build. */
declare const BUILD: string;

/** The parts of the worker's global scope that are used here: the types of pages do not have them. */
interface WorkerScope {
  readonly registration: ServiceWorkerRegistration & {
    readonly navigationPreload: { enable(): Promise<void> };
  };
  readonly clients: {
    matchAll(options: { readonly type: 'window' }): Promise<readonly WindowClient[]>;
    openWindow(url: string): Promise<unknown>;
  };
  addEventListener<Name extends keyof WorkerEvents>(name: Name, handle: (event: WorkerEvents[Name]) => void): void;
}

interface WindowClient {
  focus(): Promise<WindowClient>;
  navigate(url: string): Promise<unknown>;
}

interface ExtendableEvent {
  waitUntil(work: Promise<unknown>): void;
}

interface WorkerEvents {
  readonly install: ExtendableEvent;
  readonly activate: ExtendableEvent;
  readonly fetch: ExtendableEvent & {
    readonly request: Request;
    readonly preloadResponse: Promise<Response | undefined>;
    respondWith(response: Promise<Response>): void;
  };
  readonly push: ExtendableEvent & { readonly data: { json(): Pushed } | null };
  readonly notificationclick: ExtendableEvent & { readonly notification: Notification };
  readonly pushsubscriptionchange: ExtendableEvent & {
    readonly oldSubscription: PushSubscription | null;
    readonly newSubscription: PushSubscription | null;
  };
}

/** `src/notifications/browser-push.ts` sends it. */
interface Pushed {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly link: string | null;
  readonly severity: string;
}

const worker = globalThis as unknown as WorkerScope;
/** The address of the console, with a slash at its end. */
const { scope } = worker.registration;
/** The site may have other pages, with caches of their own. */
const OWN_CACHES = `vigil ${scope} `;
const CACHE = OWN_CACHES + BUILD;
/** What a page needs to be shown; data of the service are not kept. */
const KEPT: ReadonlySet<string> = new Set(['script', 'style', 'font', 'worker', 'manifest', 'image']);

worker.addEventListener('install', (event) => event.waitUntil(keepPage()));

async function keepPage(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.put(scope, await fetch(scope, { headers: { Accept: 'text/html' } }));
}

worker.addEventListener('activate', (event) => {
  const removeOthers = async (): Promise<void> => {
    const names = (await caches.keys()).filter((name) => name.startsWith(OWN_CACHES) && name !== CACHE);
    await Promise.all(names.map((name) => caches.delete(name)));
  };
  event.waitUntil(Promise.all([removeOthers(), worker.registration.navigationPreload.enable()]));
});

worker.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || request.headers.has('range')) return;
  if (request.mode === 'navigate') event.respondWith(openPage(request, event.preloadResponse));
  else if (request.url.startsWith(`${scope}console/`) && KEPT.has(request.destination)) {
    event.respondWith(findFile(request));
  }
});

async function openPage(request: Request, preloaded: Promise<Response | undefined>): Promise<Response> {
  try {
    return (await preloaded) ?? (await fetch(request));
  } catch {
    // Every address of the console has the same page.
    return (await caches.match(scope, { ignoreVary: true })) ?? Response.error();
  }
}

/** The names of files change with their content. */
async function findFile(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const known = await cache.match(request, { ignoreVary: true });
  if (known !== undefined) return known;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}

worker.addEventListener('push', (event) => {
  const { id, title, text, link, severity } = event.data?.json() ?? EMPTY;
  // The installation may be known by another address than the one of this page.
  const [path = ''] = /alarms\/\w+$/.exec(link ?? '') ?? [];
  const options = { body: text, tag: id, data: scope + path, requireInteraction: severity === 'critical' };
  event.waitUntil(worker.registration.showNotification(title, options));
});

/** Browsers take the permission away from whoever shows nothing. */
const EMPTY: Pushed = { id: '', title: 'Vigil', text: '', link: null, severity: 'info' };

worker.addEventListener('notificationclick', (event) => {
  const { notification } = event;
  notification.close();
  event.waitUntil(openWindow(String(notification.data)));
});

async function openWindow(url: string): Promise<void> {
  const [window] = await worker.clients.matchAll({ type: 'window' });
  if (window === undefined) await worker.clients.openWindow(url);
  else await (await window.focus()).navigate(url);
}

/** The browser has another address from now on: the account gets it in place of the old one. */
worker.addEventListener('pushsubscriptionchange', (event) => {
  const { oldSubscription, newSubscription } = event;
  if (oldSubscription !== null) event.waitUntil(replaceSubscription(oldSubscription, newSubscription));
});

async function replaceSubscription(old: PushSubscription, given: PushSubscription | null): Promise<void> {
  const subscription = given ?? (await worker.registration.pushManager.subscribe(old.options as never));
  const account = `${scope}api/v1/account`;
  const answer = await fetch(account);
  // Nobody is logged in any more.
  if (!answer.ok) return;
  const { channels } = (await answer.json()) as {
    channels: readonly { push?: { endpoint: string; name?: string } }[];
  };
  const changed = channels.map((channel) =>
    channel.push?.endpoint === old.endpoint ? { push: { ...subscription.toJSON(), name: channel.push.name } } : channel,
  );
  const headers = { 'Content-Type': 'application/json' };
  await fetch(account, { method: 'PATCH', headers, body: JSON.stringify({ channels: changed }) });
}
