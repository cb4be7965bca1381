#!/bin/sh
# Starts Grafana with the plugin that reads the API of Vigil. Downloads the plugin once. Without the internet, Grafana starts all the
# same: the dashboard of operations does not need the plugin.
set -eu
plugin=yesoreyeram-infinity-datasource
version=3.10.1
folder=${GF_PATHS_PLUGINS:-/var/lib/grafana/plugins}

if ! grep -qs "\"version\": *\"$version\"" "$folder/$plugin/plugin.json"; then
  timeout 60 grafana cli --pluginsDir "$folder" plugins install "$plugin" "$version" ||
    echo "The plugin $plugin $version could not be installed: only the dashboard of operations works" >&2
fi
exec "$@"
