#!/bin/sh
# Updates an installation of docker-compose.yml to the version in this folder without downtime: it replaces one instance at a time,
# and stops an old instance only when the load balancer uses the new one. With --stop it stops all instances first, which a version
# with a migration requires. Create a backup before.
set -eu
cd "$(dirname "$0")/../.."
patience_s=${PATIENCE_S:-300}

fail() { echo "$1" >&2; exit 1; }
say() { echo "$1"; }

bring_up() { docker compose up -d "$1" > /dev/null 2>&1 || fail "$1 cannot be started: docker compose up $1 says why"; }

# until_s COMMAND…: waits until the command succeeds.
until_s() {
  waited=0
  until "$@" > /dev/null 2>&1; do
    [ "$waited" -lt "$patience_s" ] || return 1
    sleep 1
    waited=$((waited + 1))
  done
}

is_healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]; }
knows() { docker compose exec -T proxy grep -q "^server $1:" /tmp/peers.conf; }
forgets() { docker compose exec -T proxy sh -c '! grep -q "^server $0:" /tmp/peers.conf' "$1"; }
is_member() {
  docker compose exec -T "$1" mongosh --quiet --eval \
    "const h = db.adminCommand('hello'); quit(h.isWritablePrimary || h.secondary ? 0 : 1)"
}
address_of() {
  docker inspect -f '{{range $name, $network := .NetworkSettings.Networks}}{{$name}} {{$network.IPAddress}}{{"\n"}}{{end}}' "$1" |
    sed -n 's/.*_inside //p'
}

# list_migrations CONTAINER: copied out, because the output of a command that ends at once can get lost.
list_migrations() { docker cp "$1:/app/dist/src/platform/mongo/schema/migrations" - | tar -t; }

start_one() {
  before=" $(docker compose ps -q app | tr '\n' ' ')"
  # The other instances keep their version. With --no-deps, Compose would consider the service changed and recreate it at the next
  # `up`.
  docker compose up -d --no-recreate --scale "app=$((count + 1))" app > /dev/null 2>&1 || fail 'No new instance could be started'
  for id in $(docker compose ps -q app); do
    case $before in *" $id "*) ;; *) new=$id ;; esac
  done
  if until_s is_healthy "$new" && until_s knows "$(address_of "$new")"; then return; fi
  docker compose logs --tail 20 app >&2 || true
  docker rm -f "$new" > /dev/null
  fail 'The new version did not become ready and was removed. The old version keeps running'
}

# However slow the machine is, an instance ends only after the load balancer has stopped sending requests to it. After a change of
# its configuration, nginx still serves connections that clients use as before, for ten seconds (keepalive_min_timeout).
let_go() {
  docker compose exec -T proxy sh -c 'echo "$0:$PEERS_PORT" > /tmp/leaving' "$1"
  until_s forgets "$1" || fail 'The load balancer still uses the old instance, which keeps running beside the new one.
To return to one version: docker compose up -d'
  sleep 10
}
keep_all() { docker compose exec -T proxy rm -f /tmp/leaving > /dev/null 2>&1 || true; }

replace_instances() {
  # Of an update that was killed.
  keep_all
  for old in $(docker compose ps -q app); do
    start_one
    let_go "$(address_of "$old")"
    docker stop "$old" > /dev/null
    docker rm "$old" > /dev/null
    keep_all
    say "  replaced one instance"
  done
}

# Updates changed database members one at a time, so that the others keep running.
update_members() {
  for member in $(docker compose config --services | grep '^mongo' | sort -r); do
    bring_up "$member"
    until_s is_member "$member" || fail "$member did not become available: docker compose logs $member says why"
  done
}

docker compose build
count=$(docker compose ps -q app | wc -l)
if [ "$count" -eq 0 ]; then exec docker compose up -d; fi
if [ "${1:-}" = --stop ]; then
  docker compose stop app
  exec docker compose up -d --scale "app=$count"
fi
was=$(list_migrations "$(docker compose ps -q app | head -n 1)")
candidate=$(docker create --pull never vigil)
trap 'keep_all; docker rm -v "$candidate" > /dev/null' EXIT
# Without these, a signal ends some shells before the line above is run.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
will=$(list_migrations "$candidate")
[ "$was" = "$will" ] || fail 'This version has a migration, so it cannot run beside the old one.
Create a backup, then run: scripts/ops/update.sh --stop'
# Separate steps: a single `up` would also recreate the dependents of a recreated service, such as the database. New passwords come
# first and users last; neither affects running services.
bring_up secrets
update_members
bring_up database
say "Replacing $count instances"
replace_instances
docker compose up -d --scale "app=$count"
