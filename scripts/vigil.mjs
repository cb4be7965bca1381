#!/usr/bin/env node
/** `npx vigil` and `npm run vigil --`: compiles what is missing, then runs the command line. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

const { status } = spawnSync(process.execPath, [path('prepare.mjs'), '--quiet'], { stdio: 'inherit' });
if (status === 0) await import('../dist/src/cli/main.js');
else process.exitCode = status ?? 1;
