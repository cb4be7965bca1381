/** What the parts of a condition read, in its order. Pure. */

/** `p.speed`, `last.engine.temp`, `p["door open"]`; a call has a bracket behind it. Texts are left out. */
const READ =
  /(?<![\w.])(?:p|last)\b(?:\s*\[\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*\]|((?:\s*\.\s*[A-Za-z_]\w*)+)(\s*\()?)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;

/** What packets have beside parameters. */
const OTHERS: ReadonlySet<string> = new Set(['_id', 'time', 'lat', 'lon', 'online']);

export const parametersRead = (condition: unknown): readonly string[] =>
  [...new Set(pathsOf(condition))].filter((path) => path !== '' && !OTHERS.has(path));

function pathsOf(condition: unknown): string[] {
  if (Array.isArray(condition)) return condition.flatMap(pathsOf);
  if (typeof condition !== 'object' || condition === null) return [];
  const { param, expr, all, any, not } = condition as Json;
  if (typeof param === 'string') return [param];
  return typeof expr === 'string' ? pathsIn(expr) : [all, any, not].flatMap(pathsOf);
}

type Json = Record<string, unknown>;

/** The comparisons of parameters in a condition. */
export function comparisonsIn(condition: unknown): readonly Json[] {
  if (Array.isArray(condition)) return condition.flatMap(comparisonsIn);
  if (typeof condition !== 'object' || condition === null) return [];
  const { param, all, any, not } = condition as Json;
  return typeof param === 'string' ? [condition as Json] : [all, any, not].flatMap(comparisonsIn);
}

/** The part of a rule at a place, such as `when.all[1]`. */
export const partAt = (rule: unknown, place: string): unknown =>
  place.split(/[.[\]]+/).reduce((inner, name) => (name === '' ? inner : (inner as Json | undefined)?.[name]), rule);

const pathsIn = (expression: string): string[] =>
  [...expression.matchAll(READ)].map(([, one, other, members, call]) => {
    const path = one ?? other ?? (members ?? '').replace(/\s/g, '').slice(1);
    return call === undefined ? path : path.split('.').slice(0, -1).join('.');
  });
