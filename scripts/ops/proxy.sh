#!/bin/sh
# The balancer: nginx in front of every instance that the name PEERS_NAME stands for (or of PEERS, host:port, as given). It looks
# again every few seconds, so that instances may come and go; with a certificate in the secrets it speaks TLS as well.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
run=${RUN_DIR:-/tmp}
secrets=${SECRETS_DIR:-/secrets}
export PEERS=${PEERS:-}

peers() {
  if [ -n "$PEERS" ]; then
    for peer in $PEERS; do echo "$peer"; done
  else
    getent ahostsv4 "$PEERS_NAME" | awk -v port="$PEERS_PORT" '{ print $1 ":" port }'
  fi | sort -u
}

write_peers() {
  # A peer that cannot be reached is left alone for a moment; the others answer.
  printf 'server %s max_fails=1 fail_timeout=1s;\n' $1 > "$run/peers.conf"
  write_devices "$1"
}

# MQTT is passed on as it is, where this nginx can: as a module, or built in. With MQTT_PROXY=1 it says first whose connection it is,
# which the instances then expect of every connection.
write_devices() {
  : > "$run/devices.conf"
  proxy_protocol=off
  [ "${MQTT_PROXY:-0}" = 0 ] || proxy_protocol=on
  [ -n "${MQTT_LISTEN:-}" ] || return 0
  if [ -f "${STREAM_MODULE:=/usr/lib/nginx/modules/ngx_stream_module.so}" ]; then
    echo "load_module $STREAM_MODULE;" > "$run/devices.conf"
  fi
  {
    echo 'stream { upstream devices { least_conn;'
    printf 'server %s max_fails=1 fail_timeout=1s;\n' $1 | sed "s/:[0-9]* /:${MQTT_PEERS_PORT:-1883} /"
    echo "} server { listen $MQTT_LISTEN; proxy_pass devices; proxy_connect_timeout 2s; proxy_timeout 1h;"
    echo "proxy_protocol $proxy_protocol; } }"
  } >> "$run/devices.conf"
}

write_listeners() {
  echo "listen ${HTTP_LISTEN:-8080};" > "$run/listen.conf"
  [ -s "$secrets/cert.pem" ] || return 0
  cat >> "$run/listen.conf" <<TLS
listen ${HTTPS_LISTEN:-8443} ssl;
ssl_certificate $secrets/cert.pem;
ssl_certificate_key $secrets/key.pem;
TLS
}

known=$(peers)
[ -n "$known" ] || { echo "There is no instance of ${PEERS_NAME:-PEERS}" >&2; exit 1; }
write_peers "$known"
write_listeners
# nginx reads what it includes beside its configuration.
cp "$here/nginx.conf" "$run/nginx.conf"
nginx -p "$run" -c "$run/nginx.conf" -e stderr -g 'daemon off;' &
nginx=$!
trap 'kill -QUIT "$nginx"' TERM INT
while kill -0 "$nginx" 2> /dev/null; do
  sleep "${LOOK_EVERY:-2}" &
  wait "$!" || true
  now=$(peers || true)
  if [ -n "$now" ] && [ "$now" != "$known" ]; then
    known=$now
    write_peers "$known"
    kill -HUP "$nginx"
  fi
done
