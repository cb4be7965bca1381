#!/usr/bin/env bash
# A device over HTTP: sends its temperature every second and carries out commands.
# Usage: VIGIL_TOKEN=... ./device.sh http://127.0.0.1:8080 sensor-1
set -euo pipefail
object="$1/api/v1/objects/$2"
call() { curl -sS --fail -H "Authorization: Bearer $VIGIL_TOKEN" -H 'Content-Type: application/json' "$@"; }

while true; do
  call "$object/packets" -d "{\"time\":$(date +%s)000,\"temperature\":2$((RANDOM % 10)).5}" >/dev/null
  echo stored
  # Each command is on a line of its own: {"_id":"...","command":"..."}. The request waits for a second if there is none.
  call "$object/commands?status=queued&wait=1&only=command" |
    { grep -oE '"_id":"[0-9a-f]{24}","command":"[^"]+"' || true; } |
    while IFS='"' read -r _ _ _ id _ _ _ command _; do
      echo "command $command"
      call "$object/commands/$id/result" -d '{"status":"done"}' >/dev/null
    done
done
