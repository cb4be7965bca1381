#!/bin/sh
# Outlives the test, also one that is killed: when the test has ended, and with it the engine, this removes the engine's folder, and
# its groups of processes, which the kernel keeps in every hierarchy.
folder=$1
cgroup=$2
trap '' INT TERM HUP
cat > /dev/null
for _ in $(seq 100); do
  find /sys/fs/cgroup -depth -type d -path "*$cgroup*" -exec rmdir {} + 2> /dev/null
  rm -rf "$folder" 2> /dev/null
  [ -e "$folder" ] || [ -n "$(find /sys/fs/cgroup -type d -name "${cgroup#/}")" ] || exit 0
  sleep 0.2
done
