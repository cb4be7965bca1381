module.exports = globalThis.compiled.require('socket.io-client');
