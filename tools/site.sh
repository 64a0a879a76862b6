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
# The gallery: what the examples draw, where Lamella is built.
gallery=$source/gallery.md
mkdir -p "$source/gallery"
cp docs/program.svg "$source/gallery/"
cat >"$gallery" <<PAGE
# Gallery

Pictures that the [examples](examples/custom_operator/README.md) and commands of this version made.

A function, traced and drawn as a program:

![softmax(x @ w) and its sum](gallery/program.svg)
PAGE
if [ -x build/prefix/bin/lamella ]; then
  for program in examples/ahead_of_time/scores.hlo examples/custom_call/program.hlo; do
    name=$(basename "$(dirname "$program")")
    build/prefix/bin/lamella hlo graph "$program" -o "$source/gallery/$name.html" >/dev/null
    printf '\nThe program of [%s](%s/README.md), with shapes, cost and memory: ' "$name" "$(dirname "$program")" >>"$gallery"
    printf '[open its page](gallery/%s.html).\n' "$name" >>"$gallery"
  done
  [ -f build/examples/train_digits/loss.svg ] || .venv/bin/python examples/train_digits/main.py --cpp >build/site.log 2>&1 || true
fi
for picture in build/examples/train_digits/loss*.svg; do
  [ -f "$picture" ] || continue
  cp "$picture" "$source/gallery/"
  case $picture in *cpp*) language="C++" ;; *) language=Python ;; esac
  printf "\\n[Two networks in $language that read digits](examples/train_digits/README.md), while they learn:\n\n![Loss](gallery/%s)\n" \
    "$(basename "$picture")" >>"$gallery"
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
