/** The limits of the compiled service (environment.mjs), in place of `src/core/limits.js`. */
export const { LIMITS } = globalThis.compiled;
