/** Limits of stores that administrators add, and of saved views. A part of `LIMITS`. */
import { KIB } from './units.js';

export const STORE_LIMITS = {
  customStores: 1_000,
  customStoresPerTenant: 100,
  schemaBytes: 64 * KIB,
  schemaParts: 1_000,
  schemaPatterns: 20,
  schemaPatternSize: 1_000,
  schemaPatternsSize: 2_000,
  schemaFormatCharacters: 4 * KIB,
  // A check of an entity: the first steps (of about 20 ns) are free; after them its processor time is checked every so many steps.
  schemaFreeSteps: 200_000,
  schemaStepsBetween: 10_000,
  schemaCheckMs: 12,
  // Saved views of the console.
  viewsPerUser: 100,
  viewCharacters: 2_000,
  // Notes on objects.
  notesPerObject: 1_000,
  noteCharacters: 2_000,
  noteBodyBytes: 16 * KIB,
} as const;
