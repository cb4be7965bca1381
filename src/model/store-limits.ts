/** The limits of stores that administrators add; `LIMITS` has them all. */

const KIB = 1_024;

export const STORE_LIMITS = {
  customStores: 1_000,
  customStoresPerTenant: 100,
  schemaBytes: 64 * KIB,
  schemaParts: 1_000,
  schemaPatterns: 20,
  schemaPatternSize: 1_000,
  schemaPatternsSize: 2_000,
  schemaFormatCharacters: 4 * KIB,
  // A check of an entity: steps of about 20 ns that are free, after those the time counts, looked at every so many.
  schemaFreeSteps: 200_000,
  schemaStepsBetween: 10_000,
  schemaCheckMs: 12,
} as const;
