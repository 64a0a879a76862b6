#!/bin/sh
# usage: tools/release.sh VERSION [--dry-run]
# Makes a release in build/release/VERSION: the version in the sources, its section of the changelog with
# today's date, the record of the C ABI, wheels, the source archive, which is built and tried in a clean
# folder, and checksums. Commits, tags and uploads nothing; the last lines say what is left to do. PYTHONS
# names the interpreters to build wheels for (all: see tools/wheel.sh). With --dry-run nothing is built,
# the wheels are those in build/wheels, and the sources are as before at the end.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
version=${1:-}
case $version in
  [0-9]*.[0-9]*.[0-9]*) ;;
  *)
    echo "tools/release.sh: expected a version such as 0.2.0, got '$version'" >&2
    exit 2
    ;;
esac
dry=${2:-}
if [ -n "$dry" ] && [ "$dry" != --dry-run ]; then
  echo "tools/release.sh: expected --dry-run or nothing behind the version, got '$dry'" >&2
  exit 2
fi
if [ -n "$(git status --porcelain)" ]; then
  echo "tools/release.sh: expected a work tree without changes" >&2
  exit 2
fi
if ! grep -q "^## $version (" CHANGELOG.md; then
  echo "tools/release.sh: expected CHANGELOG.md to have a section '## $version (unreleased)'" >&2
  exit 2
fi
build=${LAMELLA_RELEASE_BUILD:-1}
[ -z "$dry" ] || build=0
[ -z "$dry" ] ||
  trap 'git checkout -q -- CHANGELOG.md pyproject.toml CMakeLists.txt python/lamella/__init__.py' EXIT
sed -i "s/^## $version (unreleased)/## $version ($(date +%Y-%m-%d))/" CHANGELOG.md
sed -i "s/^version = \".*\"/version = \"$version\"/" pyproject.toml
sed -i -E "s/^(project\(Lamella VERSION )[0-9.]+/\1$version/" CMakeLists.txt
sed -i "s/^__version__ = \".*\"/__version__ = \"$version\"/" python/lamella/__init__.py
out=build/release/$version
rm -rf "$out"
mkdir -p "$out"
if [ "$build" = 1 ]; then
  sh tools/build.sh release
  .venv/bin/python tools/check_abi.py build/prefix/lib/liblamella.so
  rm -f build/wheels/lamella-*.whl
  # shellcheck disable=SC2086
  sh tools/wheel.sh ${PYTHONS:-}
fi
for wheel in build/wheels/lamella-"$version"-*.whl; do
  [ ! -f "$wheel" ] || cp "$wheel" "$out/"
done
# The archive has the new version and date, which are not committed yet.
archive=$out/lamella-$version.tar.gz
files=$(mktemp)
git ls-files >"$files"
printf 'Metadata-Version: 2.1\nName: lamella\nVersion: %s\nRequires-Python: >=3.9\nLicense: Apache-2.0\n' \
  "$version" >build/PKG-INFO
tar --transform "s,^build/PKG-INFO,PKG-INFO,;s,^,lamella-$version/," --sort=name --owner=0 --group=0 \
  --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - -T "$files" build/PKG-INFO |
  gzip -n9 >"$archive"
rm -f "$files"
if [ "$build" = 1 ]; then
  empty=$(mktemp -d)
  python3 -m venv "$empty/venv"
  CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$empty/venv/bin/python" -m pip install --quiet "$archive"
  (cd "$empty" && venv/bin/python -I "$root/tools/wheel_smoke.py")
  rm -rf "$empty"
fi
cp lamella/abi/record.txt "$out/abi-record.txt"
sed -n "/^## $version (/,/^## /p" CHANGELOG.md | sed '/^## /d' >"$out/notes.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "lamella: $out"
ls "$out"
echo "lamella: to do: git commit -am 'Release $version' && git tag v$version, and publish the files"
