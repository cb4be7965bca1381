# Receives webhooks, verifies them, and prints each message once:
#   WEBHOOK_SECRET=whsec_… python3 examples/receiver.py 3000
import base64, hashlib, hmac, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300
KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def is_genuine(headers, body):
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        return False
    digest = hmac.new(KEY, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    signatures = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(expected, signature) for signature in signatures)


# A real receiver remembers the ids where it stores what the messages say.
processed = set()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        genuine = is_genuine(self.headers, body)
        if genuine and self.headers["webhook-id"] not in processed:
            processed.add(self.headers["webhook-id"])
            print(body.decode(), flush=True)
        self.send_response(200 if genuine else 400)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 3000), Receiver)
print(f"listening at http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
