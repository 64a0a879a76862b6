#!/bin/sh
# Installs the Debian packages named in the files given, asking the package manager only when one
# is missing. Runs as root, or through sudo.
set -eu
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH DEBIAN_FRONTEND=noninteractive

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "lamella: not a Debian system; install what $* names yourself" >&2
  exit 0
fi
missing=""
for package in $(sed -e 's/#.*//' "$@" | awk 'NF { print $1 }'); do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "lamella: these Debian packages are missing, and there is no sudo:$missing" >&2
    exit 1
  fi
  as_root="sudo -E"
fi
echo "lamella: installing Debian packages:$missing"
# The names of packages of another architecture end in a colon and the architecture.
for package in $missing; do
  case $package in
    *:*)
      foreign=${package#*:}
      dpkg --print-foreign-architectures | grep -qx "$foreign" ||
        $as_root env PATH="$PATH" dpkg --add-architecture "$foreign"
      ;;
  esac
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
wait="-o DPkg::Lock::Timeout=600"
if ! { $as_root env PATH="$PATH" DEBIAN_FRONTEND=noninteractive apt-get $wait -qq update &&
  $as_root env PATH="$PATH" DEBIAN_FRONTEND=noninteractive \
    apt-get $wait -qq -y --no-install-recommends install $missing; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "lamella: could not install Debian packages:$missing" >&2
  exit 1
fi
