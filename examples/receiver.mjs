// Receives webhooks, verifies them, and prints each message once:
//   WEBHOOK_SECRET=whsec_… node examples/receiver.mjs 3000
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const TOLERANCE_S = 300;
const key = Buffer.from(process.env.WEBHOOK_SECRET.replace('whsec_', ''), 'base64');

function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

// A real receiver remembers the ids where it stores what the messages say.
const processed = new Set();
const server = createServer(async (req, res) => {
  const pieces = [];
  for await (const piece of req) pieces.push(piece);
  const body = Buffer.concat(pieces);
  if (!isGenuine(req.headers, body)) return res.writeHead(400).end();
  const id = req.headers['webhook-id'];
  if (!processed.has(id)) console.log(body.toString());
  processed.add(id);
  res.writeHead(204).end();
});
server.listen(Number(process.argv[2] ?? 3000), '127.0.0.1', () => {
  console.log(`listening at http://127.0.0.1:${server.address().port}/`);
});
