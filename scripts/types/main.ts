// Writes the types of src/client. `scripts/prepare.mjs` runs it before it compiles anything.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createAsyncApi } from '../../src/openapi/asyncapi.js';
import { createOpenApi } from '../../src/openapi/openapi.js';
import { printClientTypes } from './print-client-types.js';

const [, , file] = process.argv;
if (file === undefined) throw new Error('the file is missing');
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, printClientTypes(createOpenApi(), createAsyncApi()));
