<?php
// Receives webhooks, verifies them, and writes each message to the error log:
//   WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:3000 examples/receiver.php
const TOLERANCE_S = 300;

function is_genuine(string $id, string $timestamp, string $signatures, string $body): bool
{
    if (!ctype_digit($timestamp) || abs(time() - (int) $timestamp) > TOLERANCE_S) {
        return false;
    }
    $key = base64_decode(str_replace('whsec_', '', getenv('WEBHOOK_SECRET')));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

$body = file_get_contents('php://input');
[$id, $timestamp, $signatures] = array_map(
    fn(string $name): string => $_SERVER["HTTP_WEBHOOK_$name"] ?? '',
    ['ID', 'TIMESTAMP', 'SIGNATURE'],
);
if (!is_genuine($id, $timestamp, $signatures, $body)) {
    http_response_code(400);
    exit;
}
// A real receiver ignores an id that it has processed: a message may come twice.
error_log($body);
http_response_code(204);
