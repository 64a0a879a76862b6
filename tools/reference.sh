#!/bin/sh
# Writes the reference into build/reference: cpp/ from the installed headers, python/ from the package,
# operators/ with a page for each operator.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=build/reference
rm -rf "$out"
mkdir -p "$out"
# Comments before a declaration document it. The first lines of a header document the file.
cat >"$out/filter.sh" <<'FILTER'
#!/bin/sh
sed -E -e '1s|^// |//! @file\n//! |' -e '1s|^/\* |/*! @file\n * |' -e 's|^( *)// |\1/// |' \
  -e 's|^( *)//$|\1///|' -e 's|^( *)/\* |\1/** |' "$1"
FILTER
chmod +x "$out/filter.sh"
(cat <<SETTINGS
PROJECT_NAME = Lamella
INPUT = build/prefix/include/lamella
STRIP_FROM_PATH = build/prefix/include
STRIP_FROM_INC_PATH = build/prefix/include
RECURSIVE = YES
EXCLUDE_PATTERNS = */api/ops/* */api/redispatch.h
EXCLUDE_SYMBOLS = lamella::detail* lamella::ops*
INPUT_FILTER = $out/filter.sh
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = LAMELLA_ABI_API= LAMELLA_ABI_NOEXCEPT= LAMELLA_ALWAYS_INLINE=inline LAMELLA_HIDDEN= LAMELLA_COLD= LAMELLA_PRIVATE_API=
HAVE_DOT = NO
GENERATE_LATEX = NO
QUIET = YES
WARNINGS = NO
OUTPUT_DIRECTORY = $out
HTML_OUTPUT = cpp
SETTINGS
) | doxygen -
.venv/bin/python tools/reference.py "$out/python"
echo "lamella: $out/cpp/index.html, $out/python/index.html, $out/operators.html"
