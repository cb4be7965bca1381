/** Patterns of parameter names: `temp*`, `cell_*_mV`, `engine.*`. Pure. */

export interface NamePattern {
  /** The pattern of each level: `*` stands for any characters of a name. */
  readonly levels: readonly string[];
}

/** Null for a name without `*`. */
export const parseNamePattern = (text: string): NamePattern | null =>
  text.includes('*') ? { levels: text.split('.') } : null;

/** Whether a name of one level matches. Without backtracking beyond the last `*`: no pattern makes it slow. */
export function matchesName(pattern: string, name: string): boolean {
  let at = 0;
  let inPattern = 0;
  let starAt = -1;
  let resumeAt = 0;
  while (at < name.length) {
    if (pattern[inPattern] === '*') {
      starAt = inPattern++;
      resumeAt = at;
    } else if (inPattern < pattern.length && pattern[inPattern] === name[at]) {
      inPattern++;
      at++;
    } else if (starAt >= 0) {
      inPattern = starAt + 1;
      at = ++resumeAt;
    } else return false;
  }
  while (pattern[inPattern] === '*') inPattern++;
  return inPattern === pattern.length;
}
