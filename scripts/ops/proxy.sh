#!/bin/sh
# The load balancer: nginx in front of all instances that PEERS_NAME resolves to (or of PEERS, a list of host:port). It checks every
# few seconds for added and removed instances and renewed certificates, without interrupting requests in progress. With a certificate
# in the secrets it also listens with TLS. With READY_PORT it checks whether the instances are ready.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
run=${RUN_DIR:-/tmp}
secrets=${SECRETS_DIR:-/secrets}
next=$run/next
export PEERS=${PEERS:-}
# An instance in use may be unready for this number of checks.
patience=3

every_peer() {
  if [ -n "$PEERS" ]; then
    for peer in $PEERS; do echo "$peer"; done
  else
    getent ahostsv4 "$PEERS_NAME" | while read -r address _; do echo "$address:$PEERS_PORT"; done
  fi | sort -u
}

# Prints the state of a peer: `ready`, `late` or `leaving`. Where bash finds a socket as its input, it would first read ~/.bashrc, which may
# take longer than the check may.
state_of() {
  answer=$(timeout 2 bash --norc -c 'exec 3<> "/dev/tcp/$0/$1" && printf "GET /ready HTTP/1.0\r\n\r\n" >&3 && cat <&3' \
    "${1%:*}" "$READY_PORT" 2> /dev/null | tr -d '\0' || true)
  case $answer in
    HTTP/*' 200'*) echo ready ;;
    *'the service is stopping'*) echo leaving ;;
    *) echo late ;;
  esac
}

# Prints the peers that receive requests: ready ones, and for a while formerly ready ones, but none that is stopping, and none that the
# file `leaving` names (update.sh writes it) while there are others. If no peer is ready for some checks, all receive requests, since
# each can answer with the reason. The checks of late peers are then not counted, since an unavailable database makes all peers unready.
usable_peers() {
  touch "$run/leaving"
  all=$(every_peer | grep -vxFf "$run/leaving" || every_peer || true)
  if [ -z "${READY_PORT:-}" ]; then
    echo "$all"
    return
  fi
  ready=''
  late=''
  for peer in $all; do
    case $(state_of "$peer") in
      ready) ready="$ready $peer" ;;
      late) late="$late $peer" ;;
    esac
  done
  touch "$run/late"
  : > "$run/late.new"
  if [ -z "$ready" ]; then
    none=$(($(cat "$run/none" 2> /dev/null || echo 0) + 1))
    echo "$none" > "$run/none"
    # One slow check of the only instance must not send requests to others that are starting.
    for peer in $late; do
      if [ "$none" -lt "$patience" ] && grep -qs "^server $peer " "$run/peers.conf"; then ready="$ready $peer"; fi
    done
    ready=${ready:-$all}
  else
    rm -f "$run/none"
    for peer in $late; do
      looks=$(($(grep -cx "$peer" "$run/late" || true) + 1))
      for _ in $(seq "$looks"); do echo "$peer" >> "$run/late.new"; done
      if [ "$looks" -lt "$patience" ] && grep -qs "^server $peer " "$run/peers.conf"; then ready="$ready $peer"; fi
    done
  fi
  mv "$run/late.new" "$run/late"
  for peer in $ready; do echo "$peer"; done | sort
}

write_peers() {
  # nginx skips an unreachable peer for a moment.
  printf 'server %s max_fails=1 fail_timeout=1s;\n' $1 > "$next/peers.conf"
}

# Forwards MQTT as a TCP stream, if this nginx has the stream module. With MQTT_PROXY=1 it sends a header of the PROXY protocol, which
# the instances then require on every connection.
write_devices() {
  : > "$next/devices.conf"
  proxy_protocol=off
  [ "${MQTT_PROXY:-0}" = 0 ] || proxy_protocol=on
  [ -n "${MQTT_LISTEN:-}" ] || return 0
  if [ -f "${STREAM_MODULE:=/usr/lib/nginx/modules/ngx_stream_module.so}" ]; then
    echo "load_module $STREAM_MODULE;" > "$next/devices.conf"
  fi
  {
    echo 'stream { upstream devices { least_conn;'
    printf 'server %s max_fails=1 fail_timeout=1s;\n' $1 | sed "s/:[0-9]* /:${MQTT_PEERS_PORT:-1883} /"
    echo "} server {"
    write_listen "$MQTT_LISTEN"
    echo "proxy_pass devices; proxy_connect_timeout 2s; proxy_timeout 1h; proxy_protocol $proxy_protocol; } }"
  } >> "$next/devices.conf"
}

# A port without an address listens on all addresses, with IPv6 if it is available.
write_listen() {
  echo "listen $1${2:-};"
  case $1 in
    *:*) ;;
    *) if grep -qs . /proc/net/if_inet6; then echo "listen [::]:$1${2:-};"; fi ;;
  esac
}

write_listeners() {
  {
    write_listen "${HTTP_LISTEN:-8080}"
    # Since 1.27.4: a reload does not close a recently used connection, on which a request may be arriving.
    case $(nginx -v 2>&1) in
      */0.* | */1.[0-9].* | */1.1[0-9].* | */1.2[0-6].* | */1.27.[0-3]*) ;;
      *) echo 'keepalive_min_timeout 10s;' ;;
    esac
    if [ -n "$1" ]; then
      # The directive for HTTP/2 changed in 1.25.
      case $(nginx -v 2>&1) in
        */0.* | */1.[0-9].* | */1.1[0-9].* | */1.2[0-5].*) write_listen "${HTTPS_LISTEN:-8443}" ' ssl http2' ;;
        *)
          write_listen "${HTTPS_LISTEN:-8443}" ' ssl'
          echo 'http2 on;'
          ;;
      esac
      echo "ssl_certificate $secrets/cert.pem;"
      echo "ssl_certificate_key $secrets/key.pem;"
    fi
  } > "$next/listen.conf"
}

# Trusted proxies in front of this one, as addresses or networks: their X-Forwarded-For is used.
write_front() {
  {
    for network in ${PROXY_TRUST:-}; do echo "set_real_ip_from $network;"; done
    echo 'real_ip_header X-Forwarded-For;'
    echo 'real_ip_recursive on;'
    echo 'geo $realip_remote_addr $is_front { default 0;'
    for network in ${PROXY_TRUST:-}; do echo "$network 1;"; done
    echo '}'
  } > "$next/front.conf"
}

# A few workers are enough to forward requests. One per processor of a large machine could exceed the container's memory.
write_workers() {
  count=$(nproc 2> /dev/null || echo 1)
  echo "worker_processes $((count < 4 ? count : 4));" > "$next/workers.conf"
}

# Writes and activates a configuration; fails if nginx rejects it. `$2` is empty without TLS.
configure() {
  mkdir -p "$next"
  write_peers "$1"
  write_devices "$1"
  write_listeners "$2"
  write_front
  write_workers
  # nginx resolves includes relative to its configuration.
  cp "$here/nginx.conf" "$next/nginx.conf"
  nginx -p "$run" -c "$next/nginx.conf" -e stderr -t -q || return 1
  mv "$next"/*.conf "$run"
}

# Only one of the two files means an unusable certificate, not a removed one.
has_tls() { if [ -s "$secrets/cert.pem" ] || [ -s "$secrets/key.pem" ]; then echo yes; fi; }
# The inputs of the current configuration: a change creates a new configuration.
stamp() { cksum "$here/nginx.conf" "$secrets/cert.pem" "$secrets/key.pem" 2> /dev/null || true; }

peers=$(usable_peers)
[ -n "$peers" ] || { echo "There is no instance of ${PEERS_NAME:-PEERS}" >&2; exit 1; }
tls=$(has_tls)
made="$peers $(stamp)"
program=$(cksum "$0")
# An unusable certificate must not stop HTTP.
configure "$peers" "$tls" || {
  [ -n "$tls" ] && configure "$peers" '' && echo 'TLS is off: the certificate or its key is invalid' >&2
} || exit 1
if [ "${1:-}" = again ]; then
  nginx=$2
  kill -HUP "$nginx"
else
  nginx -p "$run" -c "$run/nginx.conf" -e stderr -g 'daemon off;' &
  nginx=$!
fi
# Finishes requests in progress, then ends the remaining connections. No new connections are accepted meanwhile, and Docker waits
# for this (stop_grace_period).
stop() {
  kill -QUIT "$nginx"
  rest=$((${STOP_GRACE_S:-5} * 10))
  while [ "$rest" -gt 0 ] && kill -0 "$nginx" 2> /dev/null; do
    sleep 0.1
    rest=$((rest - 1))
  done
  if kill -TERM "$nginx" 2> /dev/null; then wait "$nginx" || true; fi
  exit 0
}
trap stop TERM INT
while kill -0 "$nginx" 2> /dev/null; do
  sleep "${LOOK_EVERY:-2}" &
  wait "$!" || true
  # This file was updated: nginx keeps running.
  if [ "$program" != "$(cksum "$0")" ] && sh -n "$0"; then exec sh "$0" again "$nginx"; fi
  peers=$(usable_peers)
  now="$peers $(stamp)"
  if [ -n "$peers" ] && [ "$now" != "$made" ]; then
    made=$now
    if configure "$peers" "$(has_tls)"; then
      kill -HUP "$nginx"
    else
      echo 'The new configuration is invalid: nginx keeps the old one' >&2
    fi
  fi
done
