#!/bin/sh
# usage: tools/empty_root.sh PYTHON WHEEL
# Imports a wheel and uses its libraries in a root that holds Python, the C and C++ libraries which
# every manylinux system has, and nothing else. Needs to be root, for chroot.
set -eu
python=$1
wheel=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
copy() { [ -e "$root$1" ] || { mkdir -p "$root$(dirname "$1")" && cp -L "$1" "$root$1"; }; }
needed() { ldd "$@" 2>/dev/null | grep -o '/[^ ]*' | grep -v ':$'; }
binary=$(readlink -f "$("$python" -c 'import sys; print(sys._base_executable)')")
stdlib=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mkdir -p "$root$stdlib" "$root/tmp" "$root/wheel"
cp -r "$stdlib/." "$root$stdlib"
rm -rf "$root$stdlib/dist-packages" "$root$stdlib/site-packages"
for file in "$binary" $(needed "$binary" "$stdlib"/lib-dynload/*.so); do copy "$file"; done
for name in libstdc++.so.6 libgcc_s.so.1 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  file=$(ldconfig -p | sed -n "s/.*\\b$name .*=> //p" | head -n 1)
  [ -z "$file" ] || copy "$file"
done
"$python" -m zipfile -e "$wheel" "$root/wheel"
cat >"$root/try.py" <<'TRY'
import warnings

import lamella

x = lamella.ones(64, 64, requires_grad=True)
(x @ x).sum().backward()
assert x.grad[0, 0].item() == 128.0
assert lamella.linalg.inv(2 * lamella.eye(3)).tolist()[1] == [0.0, 0.5, 0.0]
assert lamella.conv2d(lamella.ones(1, 1, 8, 8), lamella.ones(1, 1, 3, 3)).sum().item() == 324.0
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for shape in (3, 4):
        assert lamella.compile(lambda x: x + 1)(lamella.ones(shape)).sum().item() == 2 * shape
assert len([one for one in told if "libllvm19" in str(one.message)]) == 1, told
print("lamella", lamella.__version__, "works in an empty root")
TRY
PYTHONHOME=$("$python" -c 'import sys; print(sys.base_prefix)') PYTHONPATH=/wheel LD_LIBRARY_PATH='' \
  chroot "$root" "$binary" -B /try.py
