/** The name of a browser or program, from its `User-Agent`. */
const BROWSERS: readonly [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
];

export function describeAgent(agent: string): string {
  const find = (table: readonly [RegExp, string][]): string | undefined =>
    table.find(([form]) => form.test(agent))?.[1];
  const names = [find(BROWSERS), find(SYSTEMS)].filter((name) => name !== undefined);
  return names.length > 0 ? names.join(' · ') : agent.slice(0, 60);
}
