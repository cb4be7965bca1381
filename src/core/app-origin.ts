/** Origins of pages that no web server sends. Pure. */

/**
 * Whether a page was sent by no web server, but is inside an app, or a file: `capacitor://localhost`, `file://`. RFC 6454, 6.2: a scheme
 * and, but for `file://`, a host. URLs of such schemes have the origin `null`, so it is compared as text.
 */
export const isAppOrigin = (origin: string): boolean =>
  /^(?!https?:|wss?:|ftp:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]*(:\d{1,5})?$/.test(origin);

/** Whether a page is inside an app. Any browser opens files, so these may be anybody's. */
export const isInsideApp = (origin: string): boolean => isAppOrigin(origin) && !origin.startsWith('file:');
