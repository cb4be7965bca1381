#!/bin/sh
# The balancer: nginx in front of every instance that the name PEERS_NAME stands for (or of PEERS, host:port, as given). It looks
# again every few seconds: instances come and go, certificates are renewed, and none of it ends what is under way. With a
# certificate in the secrets it speaks TLS as well; with READY_PORT it asks the instances whether they are ready.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
run=${RUN_DIR:-/tmp}
secrets=${SECRETS_DIR:-/secrets}
next=$run/next
export PEERS=${PEERS:-}
# So many looks an instance that was in use may say that it is not ready.
patience=3

every_peer() {
  if [ -n "$PEERS" ]; then
    for peer in $PEERS; do echo "$peer"; done
  else
    getent ahostsv4 "$PEERS_NAME" | while read -r address _; do echo "$address:$PEERS_PORT"; done
  fi | sort -u
}

# Whether a peer is `ready`, `late` or `leaving`.
state_of() {
  answer=$(timeout 2 bash -c 'exec 3<> "/dev/tcp/$0/$1" && printf "GET /ready HTTP/1.0\r\n\r\n" >&3 && cat <&3' \
    "${1%:*}" "$READY_PORT" 2> /dev/null | tr -d '\0' || true)
  case $answer in
    HTTP/*' 200'*) echo ready ;;
    *'the service is stopping'*) echo leaving ;;
    *) echo late ;;
  esac
}

# Who gets requests: those that are ready, and for a while those that were; nobody who is about to end. Where none is ready all
# of them get some, since each can say why; and as long as none is, nobody's patience is used up: when a database is away, all
# say so.
usable_peers() {
  all=$(every_peer || true)
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
    ready=$all
  else
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
  # A peer that cannot be reached is left alone for a moment; the others answer.
  printf 'server %s max_fails=1 fail_timeout=1s;\n' $1 > "$next/peers.conf"
}

# MQTT is passed on as it is, where this nginx can: as a module, or built in. With MQTT_PROXY=1 it says first whose connection it is,
# which the instances then expect of every connection.
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

# A port is one of every address, those of IPv6 as well where there is IPv6.
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
    # Since 1.27.4: a connection that was used a moment ago is not closed by a change, since a request may be on its way.
    case $(nginx -v 2>&1) in
      */0.* | */1.[0-9].* | */1.1[0-9].* | */1.2[0-6].* | */1.27.[0-3]*) ;;
      *) echo 'keepalive_min_timeout 10s;' ;;
    esac
    if [ -n "$1" ]; then
      # HTTP/2 is said in another way since 1.25.
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

# Who is in front of this, and is believed when it says where a request comes from: addresses or networks.
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

# A few do: they only pass on. One for each processor of a large machine would need more memory than a container may have.
write_workers() {
  count=$(nproc 2> /dev/null || echo 1)
  echo "worker_processes $((count < 4 ? count : 4));" > "$next/workers.conf"
}

# A configuration that nginx takes, in the place where it is read; false where there is none. `$2` is empty without TLS.
configure() {
  mkdir -p "$next"
  write_peers "$1"
  write_devices "$1"
  write_listeners "$2"
  write_front
  write_workers
  # nginx reads what it includes beside its configuration.
  cp "$here/nginx.conf" "$next/nginx.conf"
  nginx -p "$run" -c "$next/nginx.conf" -e stderr -t -q || return 1
  mv "$next"/*.conf "$run"
}

# One without the other is a certificate that cannot be used, not one that was taken away.
has_tls() { if [ -s "$secrets/cert.pem" ] || [ -s "$secrets/key.pem" ]; then echo yes; fi; }
# What this nginx was made of: when something of it changes, another one is made.
stamp() { cksum "$here/nginx.conf" "$secrets/cert.pem" "$secrets/key.pem" 2> /dev/null || true; }

peers=$(usable_peers)
[ -n "$peers" ] || { echo "There is no instance of ${PEERS_NAME:-PEERS}" >&2; exit 1; }
tls=$(has_tls)
made="$peers $(stamp)"
program=$(cksum "$0")
# A certificate that cannot be used takes nobody's HTTP away.
configure "$peers" "$tls" || {
  [ -n "$tls" ] && configure "$peers" '' && echo 'There is no TLS: the certificate or its key cannot be used' >&2
} || exit 1
if [ "${1:-}" = again ]; then
  nginx=$2
  kill -HUP "$nginx"
else
  nginx -p "$run" -c "$run/nginx.conf" -e stderr -g 'daemon off;' &
  nginx=$!
fi
# Requests under way are answered, and who would stay for longer is cut: nobody is let in meanwhile, and whoever started this
# waits (docker: stop_grace_period).
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
  # An update of this file: the same nginx goes on.
  if [ "$program" != "$(cksum "$0")" ] && sh -n "$0"; then exec sh "$0" again "$nginx"; fi
  peers=$(usable_peers)
  now="$peers $(stamp)"
  if [ -n "$peers" ] && [ "$now" != "$made" ]; then
    made=$now
    if configure "$peers" "$(has_tls)"; then
      kill -HUP "$nginx"
    else
      echo 'What has changed cannot be used: everything stays as it is' >&2
    fi
  fi
done
