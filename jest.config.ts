/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  // Some start processes of their own, on machines that have other things to do.
  testTimeout: 60_000,
  // A test that fails may leave its service running: that must not keep the run from ending.
  forceExit: true,
  globalSetup: '<rootDir>/test/start-mongod.mjs',
  globalTeardown: '<rootDir>/test/stop-mongod.mjs',
};

export default config;
