/** After all tests. */
export default () => globalThis.stopMongod?.();
