#!/bin/sh
# Updates an installation of docker-compose.yml to the version in this folder, while it answers: one instance after the other is
# replaced, and each ends only when the balancer knows the one in its place. With --stop everything ends first: a version that
# brings what is stored into another form needs that. Back up before.
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
is_member() {
  docker compose exec -T "$1" mongosh --quiet --eval \
    "const h = db.adminCommand('hello'); quit(h.isWritablePrimary || h.secondary ? 0 : 1)"
}
address_of() {
  docker inspect -f '{{range $name, $network := .NetworkSettings.Networks}}{{$name}} {{$network.IPAddress}}{{"\n"}}{{end}}' "$1" |
    sed -n 's/.*_inside //p'
}

start_one() {
  before=" $(docker compose ps -q app | tr '\n' ' ')"
  # The others stay as they are, of the version they have. With --no-deps the service would count as another one, and be made
  # anew by the next `up`.
  docker compose up -d --no-recreate --scale "app=$((count + 1))" app > /dev/null 2>&1 || fail 'No new instance could be started'
  for id in $(docker compose ps -q app); do
    case $before in *" $id "*) ;; *) new=$id ;; esac
  done
  if until_s is_healthy "$new" && until_s knows "$(address_of "$new")"; then return; fi
  docker compose logs --tail 20 app >&2 || true
  docker rm -f "$new" > /dev/null
  fail 'The new version does not become ready: it is taken away again, and the old one goes on'
}

replace_instances() {
  for old in $(docker compose ps -q app); do
    start_one
    docker stop "$old" > /dev/null
    docker rm "$old" > /dev/null
    say "  an instance was replaced"
  done
}

# The members of the database that have changed, one by one: where there are several the others go on meanwhile.
update_members() {
  for member in $(docker compose config --services | grep '^mongo' | sort -r); do
    bring_up "$member"
    until_s is_member "$member" || fail "$member does not come back: docker compose logs $member says why"
  done
}

docker compose build
count=$(docker compose ps -q app | wc -l)
if [ "$count" -eq 0 ]; then exec docker compose up -d; fi
if [ "${1:-}" = --stop ]; then
  docker compose stop app
  exec docker compose up -d --scale "app=$count"
fi
was=$(docker compose exec -T app ls dist/src/db/migrations | grep '^[0-9].*js$')
will=$(docker compose run --rm --no-deps -T app ls dist/src/db/migrations | grep '^[0-9].*js$')
[ "$was" = "$will" ] || fail 'This version stores things in another form than the one that runs, so the two cannot run side by side.
Back up, then: scripts/ops/update.sh --stop'
# One after the other: in one `up` whatever depends on something that is made anew is made anew itself, the database as well.
# Passwords that are new in this version come first, and users last; neither touches what runs.
bring_up secrets
update_members
bring_up database
say "Replacing $count of app"
replace_instances
docker compose up -d --scale "app=$count"
