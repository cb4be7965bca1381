/** Runs in the engine's network: passes connections on from a socket file for each port to that port of 127.0.0.1. */
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

const [folder, ...ports] = process.argv.slice(2);
for (const port of ports) {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [client, target],
      [target, client],
    ])
      from
        .on('error', () => to.destroy())
        .on('close', () => to.destroySoon())
        .pipe(to);
  });
  server.listen(join(folder, `${port}.sock`));
}
process.stdin.on('end', () => process.exit(0)).resume();
