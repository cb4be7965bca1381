/** A push service with browsers that have subscribed to it: it keeps what their service workers would receive. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.js';

export interface Pushed {
  readonly headers: IncomingHttpHeaders;
  readonly message: Record<string, unknown>;
}

export interface Browser {
  /** As `PushSubscription.toJSON()` gives it. */
  readonly subscription: { readonly endpoint: string; readonly expirationTime: null; readonly keys: object };
  readonly pushed: Pushed[];
  /** What the push service answers from now on; 201 at first. */
  status: number;
  got(count: number): Promise<Pushed[]>;
}

export interface PushService {
  readonly url: string;
  subscribe(): Browser;
  stop(): Promise<void>;
}

interface Keys {
  readonly ecdh: ReturnType<typeof createECDH>;
  readonly auth: Buffer;
}

const LENGTH_BYTES = 4;
const SALT_BYTES = 16;
const TAG_BYTES = 16;

/** RFC 8188 and 8291, with one record. */
function decrypt(body: Buffer, { ecdh, auth }: Keys): Buffer {
  const salt = body.subarray(0, SALT_BYTES);
  const keyStart = SALT_BYTES + LENGTH_BYTES + 1;
  const key = body.subarray(keyStart, keyStart + (body[keyStart - 1] as number));
  const record = body.subarray(keyStart + key.length);
  const derive = (secret: Buffer, salted: Buffer, info: Buffer, bytes: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, salted, info, bytes));
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), ecdh.getPublicKey(), key]);
  const secret = derive(ecdh.computeSecret(key), auth, info, 32);
  const contentKey = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
  const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
  const decipher = createDecipheriv('aes-128-gcm', contentKey, nonce).setAuthTag(record.subarray(-TAG_BYTES));
  const padded = Buffer.concat([decipher.update(record.subarray(0, -TAG_BYTES)), decipher.final()]);
  return padded.subarray(0, padded.lastIndexOf(2));
}

export async function startPushService(): Promise<PushService> {
  const browsers = new Map<string, Browser & Keys>();
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on('data', (piece) => pieces.push(piece));
    req.on('end', () => {
      const browser = browsers.get(String(req.url));
      if (browser?.status === 201) {
        const message = JSON.parse(decrypt(Buffer.concat(pieces), browser).toString());
        browser.pushed.push({ headers: req.headers, message });
      }
      res.writeHead(browser?.status ?? 404).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    subscribe() {
      const path = `/push/${randomBytes(16).toString('base64url')}`;
      const ecdh = createECDH('prime256v1');
      const p256dh = ecdh.generateKeys('base64url');
      const auth = randomBytes(16);
      const keys = { p256dh, auth: auth.toString('base64url') };
      const pushed: Pushed[] = [];
      const browser: Browser & Keys = {
        subscription: { endpoint: url + path, expirationTime: null, keys },
        pushed,
        status: 201,
        ecdh,
        auth,
        async got(count) {
          await until(() => pushed.length >= count, `${count} messages in the browser`);
          return pushed;
        },
      };
      browsers.set(path, browser);
      return browser;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
