/** What a QR code of a source contains: an address with which an app sets itself up, where there is one. */

/** Traccar Client takes the address itself, as most senders do. */
export function toSetupLink(kind: string, address: string, key: string): string {
  const whole = `${address}/${key}`;
  if (kind === 'overland') return `overland://setup?${new URLSearchParams({ url: address, token: key })}`;
  if (kind !== 'owntracks') return whole;
  // https://owntracks.org/booklet/features/remoteconfig/: mode 3 is HTTP.
  const settings = { _type: 'configuration', mode: 3, url: whole, auth: false };
  return `owntracks:///config?inline=${encodeURIComponent(btoa(JSON.stringify(settings)))}`;
}
