/** The compiled patterns of expressions: each is compiled once, as long as they are few and small together. Pure. */
import { LIMITS } from '../limits.js';
import { compilePattern, type Pattern } from '../schema/pattern.js';

export class Patterns {
  readonly #kept = new Map<string, Pattern>();
  #size = 0;

  get count(): number {
    return this.#kept.size;
  }

  /** Of all that are kept. */
  get size(): number {
    return this.#size;
  }

  /** Throws an Error for an invalid pattern. */
  find(source: string): Pattern {
    const known = this.#kept.get(source);
    if (known !== undefined) return known;
    const made = compilePattern(source);
    if (this.count >= LIMITS.expressionPatterns || this.#size + made.size > LIMITS.expressionPatternsKept) {
      this.#kept.clear();
      this.#size = 0;
    }
    this.#kept.set(source, made);
    this.#size += made.size;
    return made;
  }
}
