#!/bin/sh
# The first process of an engine's own namespaces: whatever runs in there, and whatever is mounted, ends with it. It ends when
# its standard input does, so also when the test is killed.
set -eu
folder=$1
data_size=$2
mount -t tmpfs tmpfs /run
echo 'nameserver 10.0.2.3' > /run/resolv.conf
mount --bind /run/resolv.conf /etc/resolv.conf
# Where there is memory enough nothing has to be removed later, and no disk is waited for.
[ "$data_size" = 0 ] || mount -t tmpfs -o "size=$data_size" tmpfs "$folder/data"
dockerd --config-file "$folder/daemon.json" > "$folder/dockerd.log" 2>&1 < /dev/null &
exec 3<&0
cat <&3 > /dev/null
