/** @jest-config-loader esbuild-register */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from 'jest';

const common: Config = {
  testEnvironment: '<rootDir>/test/support/serial-environment.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
};

const withDatabase: Config = {
  ...common,
  testEnvironment: '<rootDir>/test/support/environment.mjs',
  moduleNameMapper: {
    '^(\\.{1,2}/)+(src/)?(core/)?limits\\.js$': '<rootDir>/test/support/compiled-limits.mjs',
    '^(mqtt|playwright-core|socket\\.io-client|supertest)$': '<rootDir>/test/support/shared/$1.cjs',
    ...common.moduleNameMapper,
  },
  globalSetup: '<rootDir>/test/support/start-mongod.mjs',
  globalTeardown: '<rootDir>/test/support/stop-mongod.mjs',
};

/** Tests that repeat: a share of their runs in their own project, all of them in `npm run test:soak` (test/support/runs.ts). */
const repeatedTests = readdirSync(join(__dirname, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .filter((file) => readFileSync(join(__dirname, 'test', file), 'utf8').includes('/support/runs.js'))
  .map((file) => `<rootDir>/test/${file}`);

const config: Config = {
  projects: [
    { ...common, displayName: 'lint', testMatch: ['<rootDir>/test/lint/**/*.test.ts'] },
    { ...common, displayName: 'unit', testMatch: ['<rootDir>/test/unit/**/*.test.ts'] },
    {
      ...withDatabase,
      displayName: 'integration',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/(lint|unit|slow)/'],
    },
    { ...withDatabase, displayName: 'slow', testMatch: ['<rootDir>/test/slow/**/*.test.ts'] },
    { ...withDatabase, displayName: 'soak', globals: { isSoak: true }, testMatch: repeatedTests },
  ],
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  // They wait more than they compute.
  maxWorkers: 3,
  // Longer than anything that a test waits for, so that it is the wait that fails and says what it waited for (test/support/until.ts).
  testTimeout: 900_000,
  reporters: ['default', '<rootDir>/test/support/slowest-files-reporter.mjs'],
};

export default config;
