module.exports = globalThis.compiled.require('supertest');
