/** Makes one program of the simulation and of what it runs, and starts it: compiled file by file, runs take a fifth longer. */
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';

const program = new URL('../../dist/simulation/main.js', import.meta.url);

await build({
  entryPoints: [fileURLToPath(new URL('main.ts', import.meta.url))],
  outfile: fileURLToPath(program),
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  sourcemap: 'linked',
  logLevel: 'error',
});
await stop();
await import(program.href);
