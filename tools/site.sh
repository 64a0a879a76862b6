#!/bin/sh
# Builds the documentation site into build/site/VERSION, with search. The reference is part of it if
# `make reference` was run, and so are pictures that the examples have drawn. build/site/index.html
# lists the versions that were built there.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
source=build/site_source
out=build/site/$version
rm -rf "$source" "$out"
mkdir -p "$source"
# Pages and what they link to keep their places, so that links are the same here and in the tree.
{
  git ls-files -co --exclude-standard 'docs/*' '*.md' | grep -v -e '^tests/' -e '/templates/'
  git ls-files examples
  git ls-files '*.md' | xargs grep -oh '](\(\.\./\)*[A-Za-z][A-Za-z0-9_./-]*' | sed 's/^](\(\.\.\/\)*//' |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done
} | sort -u | while read -r file; do
  [ -f "$file" ] || continue
  mkdir -p "$source/$(dirname "$file")"
  cp "$file" "$source/$file"
done
for picture in build/examples/train_digits/loss*.svg; do
  [ ! -f "$picture" ] || cp "$picture" "$source/examples/train_digits/"
done
if [ -f build/reference/operators.html ]; then
  cp -r build/reference "$source/reference"
  rm -f "$source/reference/filter.sh"
  cat >"$source/reference.md" <<PAGE
# Reference

- [Operators](reference/operators.html): what each computes, its dtypes, gradient, batching and lowering
- [Python](reference/python/index.html)
- [C++](reference/cpp/index.html)
PAGE
else
  printf '# Reference\n\n`make reference site` makes these pages.\n' >"$source/reference.md"
fi
LAMELLA_SITE_NAME="Lamella $version" .venv/bin/mkdocs build --strict -f tools/mkdocs.yml -d "../$out" \
  >build/site.log 2>&1 || {
  cat build/site.log >&2
  exit 1
}
{
  echo '<!DOCTYPE html><meta charset="utf-8"><title>Lamella</title><h1>Lamella</h1><ul>'
  for each in build/site/*/; do
    name=$(basename "$each")
    echo "<li><a href=\"$name/index.html\">$name</a></li>"
  done
  echo '</ul>'
} >build/site/index.html
echo "lamella: $out/index.html"
