module.exports = globalThis.compiled.require('mqtt');
