/** A jest reporter that ends a run with its ten slowest test files: what to look at when the suite becomes slow. */
const FILES_SHOWN = 10;

export default class SlowestFilesReporter {
  onRunComplete(_contexts, { testResults }) {
    const files = testResults
      .filter(({ skipped, perfStats }) => !skipped && perfStats.end > 0)
      .map(({ testFilePath, perfStats: { start, end } }) => ({ path: testFilePath, ms: end - start }))
      .sort((a, b) => b.ms - a.ms);
    if (files.length < 2) return;
    const totalS = files.reduce((sum, { ms }) => sum + ms, 0) / 1_000;
    const rows = files
      .slice(0, FILES_SHOWN)
      .map(({ path, ms }) => `  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${path.slice(process.cwd().length + 1)}`);
    process.stderr.write(`\nSlowest of ${files.length} files (${totalS.toFixed(0)} s in all):\n${rows.join('\n')}\n`);
  }
}
