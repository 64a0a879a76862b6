#!/bin/sh
# usage: tools/venv.sh PYTHON GROUP...
# Makes .venv with PYTHON, points it at build/prefix, and installs the groups' requirements:
# tools/requirements-GROUP.txt, and requirements-GROUP-nodeps.txt without their dependencies. Does
# nothing if that was done before.
set -eu
python=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.venv

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || {
  echo "lamella: needs Python 3.9 or newer; $python is $("$python" --version 2>&1)" >&2
  exit 1
}
# A .venv that was moved, or whose interpreter no longer exists, is made anew.
if ! "$venv/bin/python" -c "import sys; sys.exit(sys.prefix != '$venv')" 2>/dev/null ||
  [ "$(head -n 1 "$venv/.root" 2>/dev/null)" != "$root" ]; then
  echo "lamella: making .venv"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  echo "$root/build/prefix/lib/python" >"$site/lamella-build-tree.pth"
  echo "$root" >"$venv/.root"
fi
for group in "$@"; do
  bare=$root/tools/requirements-$group-nodeps.txt
  sum=$(cat "$root/tools/requirements-build.txt" "$root/tools/requirements-$group.txt" \
    $([ ! -f "$bare" ] || echo "$bare") | cksum)
  stamp=$venv/.installed-$group
  [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || continue
  echo "lamella: installing Python packages ($group)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location \
    -r "$root/tools/requirements-$group.txt"
  [ ! -f "$bare" ] || "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps -r "$bare"
  echo "$sum" >"$stamp"
done
