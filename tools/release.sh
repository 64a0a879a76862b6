#!/bin/sh
# usage: tools/release.sh VERSION
# Makes a release in build/release/VERSION: the version in the sources, its section of the changelog with
# today's date, the record of the C ABI, wheels, the source archive and checksums. Commits, tags and uploads
# nothing; the last lines say what is left to do. PYTHONS names the interpreters to build wheels for.
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
if [ -n "$(git status --porcelain)" ]; then
  echo "tools/release.sh: expected a work tree without changes" >&2
  exit 2
fi
if ! grep -q "^## $version (" CHANGELOG.md; then
  echo "tools/release.sh: expected CHANGELOG.md to have a section '## $version (unreleased)'" >&2
  exit 2
fi
sed -i "s/^## $version (unreleased)/## $version ($(date +%Y-%m-%d))/" CHANGELOG.md
sed -i "s/^version = \".*\"/version = \"$version\"/" pyproject.toml
sed -i -E "s/^(project\(Lamella VERSION )[0-9.]+/\1$version/" CMakeLists.txt
sed -i "s/^__version__ = \".*\"/__version__ = \"$version\"/" python/lamella/__init__.py
out=build/release/$version
rm -rf "$out"
mkdir -p "$out"
if [ "${LAMELLA_RELEASE_BUILD:-1}" = 1 ]; then
  sh tools/build.sh release
  .venv/bin/python tools/check_abi.py build/prefix/lib/liblamella.so
  rm -f build/wheels/lamella-*.whl
  # shellcheck disable=SC2086
  sh tools/wheel.sh ${PYTHONS:-}
  cp build/wheels/lamella-*.whl "$out/"
fi
# The archive has the new version and date, which are not committed yet.
files=$(mktemp)
git ls-files >"$files"
tar --transform "s,^,lamella-$version/," --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime="@$(git log -1 --format=%ct)" -cf - -T "$files" | gzip -n9 >"$out/lamella-$version.tar.gz"
rm -f "$files"
cp lamella/abi/record.txt "$out/abi-record.txt"
sed -n "/^## $version (/,/^## /p" CHANGELOG.md | sed '/^## /d' >"$out/notes.md"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "lamella: $out"
ls "$out"
echo "lamella: to do: git commit -am 'Release $version' && git tag v$version, and publish the files"
