#!/usr/bin/env python3
"""Checks that lamella/abi/*.h and the shared library agree, and extensions need nothing else.

C++ symbols that the library exports serve its own Python extension, which is shipped in lockstep;
no other library may ask for one.

usage: check_exports.py LIBLAMELLA [EXTENSION...]
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARATION = re.compile(r"LAMELLA_ABI_API\b[^;]*?\b(lamella_\w+)\s*(?:\(|__attribute__)")


def declared():
    headers = sorted((ROOT / "lamella/abi").glob("*.h"))
    text = "\n".join(header.read_text(encoding="utf-8") for header in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(DECLARATION.findall(text))


def symbols(library, which):
    out = subprocess.run(
        ["nm", "-D", which, "--demangle", library], capture_output=True, text=True, check=True
    ).stdout
    for line in out.splitlines():
        # "address TYPE name", without the address where undefined; a version may follow the name.
        match = re.match(r"^[0-9a-f]* *([A-Za-z]) (.*?)(@.*)?$", line)
        if match:
            yield match.group(1), match.group(2)


def main(library, *extensions):
    names = declared()
    errors = []
    if not names:
        errors.append("lamella/abi/abi.h: found no declaration marked LAMELLA_ABI_API")
    exported = {
        name for _, name in symbols(library, "--defined-only") if re.fullmatch(r"lamella_\w+", name)
    }
    errors += [
        f"{library}: exports {name}, which abi.h does not declare"
        for name in sorted(exported - names)
    ]
    errors += [
        f"{library}: does not export {name}, which abi.h declares"
        for name in sorted(names - exported)
    ]
    for extension in extensions:
        for _, name in symbols(extension, "--undefined-only"):
            ours = name.startswith("lamella_") or re.search(r"\blamella::", name)
            if ours and name not in names:
                errors.append(f"{extension}: needs {name}, which is not in the C ABI")
        errors += [
            f"{extension}: has the unique symbol {name}, so that it cannot be unloaded"
            for kind, name in symbols(extension, "--defined-only")
            if kind == "u" and "lamella" in name
        ]
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
