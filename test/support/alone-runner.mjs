/** Runs test files one after the other, after those of all other runners: they measure, and need the machine for themselves. */
import TestRunner from 'jest-runner';

export default class AloneRunner extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: 1 }, context);
  }
}
