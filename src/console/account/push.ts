/** Notifications in this browser: `service-worker.ts` shows them, also while no page is open. */
import { toAddress } from '../state/location.js';
import { describeAgent } from './agent.js';

/** What the service sends messages to: the subscription of a browser, as the account has it. */
export interface BrowserAddress {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
  readonly name?: string;
}

/** Browsers have no service workers on pages without HTTPS. */
export const canNotify = (): boolean => 'serviceWorker' in navigator && 'PushManager' in globalThis;

/** The address at which this browser is notified; null if it is not. */
export async function findEndpoint(): Promise<string | null> {
  if (!canNotify()) return null;
  const registration = await navigator.serviceWorker.getRegistration();
  return (await registration?.pushManager.getSubscription())?.endpoint ?? null;
}

/** Asks for the permission; null where it is refused. Throws where the browser reaches no push service. */
export async function subscribe(pushKey: string): Promise<BrowserAddress | null> {
  if ((await Notification.requestPermission()) !== 'granted') return null;
  const { pushManager } = await navigator.serviceWorker.register(toAddress('/service-worker.js'));
  await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: pushKey };
  const subscription = await pushManager.subscribe(options).catch(async (error: unknown) => {
    // It has a subscription with the key of another installation at this address.
    const other = await pushManager.getSubscription();
    if (other === null) throw error;
    await other.unsubscribe();
    return pushManager.subscribe(options);
  });
  const { endpoint, keys } = subscription.toJSON() as unknown as BrowserAddress;
  return { endpoint, keys, name: describeAgent(navigator.userAgent) };
}

/** Ends the notifications of this browser, if this is its address. */
export async function unsubscribe(endpoint: string): Promise<void> {
  if ((await findEndpoint()) !== endpoint) return;
  const registration = await navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}
