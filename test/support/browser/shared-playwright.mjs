/** playwright-core as its worker has loaded it (environment.mjs), which takes more than half a second, and not again for each file. */
export const { chromium } = await globalThis.compiled.loadPlaywright();
