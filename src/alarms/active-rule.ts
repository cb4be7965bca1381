/** Rules that run, and objects as they select them. */
import type { Scope } from '../core/access.js';
import type { JsonObject } from '../core/json.js';
import type { Reach } from '../webhooks/webhook.js';
import type { CompiledRule } from './evaluate.js';
import type { StoredRule } from './rule-store.js';

export interface ActiveRule {
  readonly id: string;
  /** Another one whenever the rule is read again. */
  readonly serial: number;
  readonly stored: StoredRule;
  readonly compiled: CompiledRule;
  /** The same as long as the conditions are. */
  readonly key: string;
  readonly reach: Reach;
  /** Of its owner; null where that is no active user. */
  readonly scope: Scope | null;
  /** Changes while it runs. */
  readonly seen: {
    /** Its expressions have taken so many steps that changes are not to wait for them. */
    isDear: boolean;
    /** They have taken too many: the rule shows it. */
    isExhausted: boolean;
  };
}

/** An object as rules select it. */
export interface SelectedObject {
  readonly id: string;
  readonly audience: readonly string[];
  readonly branch: readonly string[];
  readonly object: JsonObject;
}
