#!/bin/sh
# Builds a wheel for the Python of .venv into build/wheels, and tests it in an empty environment
# without this tree or other packages. The build folder is kept, so a second run is short.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
echo "lamella: building the wheel"
mkdir -p build/wheels
rm -f build/wheels/lamella-*.whl
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} .venv/bin/python -m pip wheel --quiet \
  --disable-pip-version-check --no-deps --wheel-dir build/wheels . >build/wheels/build.log 2>&1 || {
  tail -n 60 build/wheels/build.log >&2
  exit 1
}
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
.venv/bin/python -m venv "$empty/venv"
"$empty/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
  build/wheels/lamella-*.whl
(cd "$empty" && "$empty/venv/bin/python" -I "$root/tools/wheel_smoke.py")
echo "lamella: $(ls build/wheels/lamella-*.whl), $(du -h build/wheels/lamella-*.whl | cut -f 1)"
