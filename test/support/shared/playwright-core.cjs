module.exports = globalThis.compiled.require('playwright-core');
