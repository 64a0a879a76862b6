#!/usr/bin/env python3
"""The C ABI is what lamella/abi/record.txt says: layouts, prototypes, symbol versions, numbers.

The record holds the version of the ABI that it describes. Within a LAMELLA_ABI_MAJOR nothing that
is recorded changes or goes; what is new needs a higher LAMELLA_ABI_MINOR than the record's, and
functions need the symbol version of that minor.

usage: check_abi.py LIBLAMELLA [--write]     --write makes the record anew, for a release.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "lamella/abi/record.txt"

# Numbers that values of the ABI carry, from the tables that define them.
TABLES = r"""
#define LAMELLA_SCALAR_TYPE(type, name, number, ...) printf("scalar_type " #name " %d\n", number);
#define LAMELLA_SCALAR_NAME(name, number, text, size) printf("scalar_type " #name " %d\n", number);
#include "lamella/core/scalar_type.def"
#include "lamella/abi/dispatch_keys.def"
#define LAMELLA_PRINT(name, number, ...) printf("device_type " #name " %d\n", number);
  LAMELLA_DEVICE_TYPES(LAMELLA_PRINT)
  for (uint32_t key = 0; key < 0xffff; ++key) {
    const char* name = lamella_dispatch_key_name((uint16_t)key);
    uint16_t found = 0xffff;
    if (lamella_dispatch_key_from_name(name, &found) == LAMELLA_OK && found == key) {
      printf("dispatch_key %s %u\n", name, key);
    }
  }
"""


def pieces(text, end):
    """Splits at `end` outside of braces and parentheses."""
    depth, piece = 0, ""
    for letter in text:
        depth += (letter in "{(") - (letter in "})")
        if letter == end and depth == 0:
            yield piece.strip()
            piece = ""
        else:
            piece += letter
    if piece.strip():
        yield piece.strip()


def name_of(declaration):
    """The name that a field, a typedef or a prototype declares."""
    outside = re.sub(r"\{.*\}", "", declaration)
    pointer = re.search(r"\(\*(\w+)\)\s*\(", outside)
    if pointer:
        return pointer.group(1)
    return re.findall(r"\w+", re.sub(r"\(.*\)|\[.*?\]", "", outside))[-1]


def body_of(declaration):
    return declaration[declaration.index("{") + 1 : declaration.rindex("}")]


class Headers:
    """The declarations of lamella/abi/*.h: facts from the text, and those that need a compiler."""

    def __init__(self):
        self.files = sorted((ROOT / "lamella/abi").glob("*.h"))
        self.facts = []  # complete lines
        self.structs = {}  # name as C spells it: its fields' declarations
        self.values = []  # enumerators and numbers of macros
        for file in self.files:
            self.read(file.read_text(encoding="utf-8"))

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
        self.values += re.findall(r"^#define (LAMELLA_\w+) +[(\d]", text, flags=re.M)
        text = re.sub(r"^\s*#.*$|^extern \"C\" \{$|^\}$", "", text, flags=re.M)
        for declaration in pieces(re.sub(r"\s+", " ", text), ";"):
            self.declaration(declaration)

    def declaration(self, text):
        if text.startswith("enum"):
            self.values += [item.split("=")[0].strip() for item in pieces(body_of(text), ",")]
        elif re.match(r"(typedef )?struct \w+ \{", text):
            typedef = text.startswith("typedef")
            name = name_of(text) if typedef else " ".join(text.split()[:2])
            self.structs[name] = list(pieces(body_of(text), ";"))
        elif text.startswith("typedef"):
            self.facts.append(f"typedef {name_of(text)} {text}")
        else:
            plain = re.sub(r"\b(LAMELLA_ABI_\w+|extern|__attribute__ ?\(\(.*\)\)) ?", "", text)
            found = re.search(r"\b(lamella_\w+) ?(\(|$)", plain.strip())
            if not found:
                sys.exit(f"lamella/abi: cannot read '{text}'")
            self.facts.append(f"symbol {found.group(1)} {plain.strip()}")

    def program(self):
        lines = ["#include <stdio.h>"]
        lines += [f'#include "{file.relative_to(ROOT)}"' for file in self.files]
        lines.append("int main(void) {")
        for struct, fields in self.structs.items():
            name = struct.split()[-1]
            lines.append(f'printf("struct {name} %zu bytes\\n", sizeof({struct}));')
            for field in fields:
                member = name_of(field)
                lines.append(
                    f'printf("field {name}.{member} at %zu, %zu bytes: {field}\\n", '
                    f"offsetof({struct}, {member}), sizeof((({struct}*)0)->{member}));"
                )
        lines += [f'printf("value {name} %lld\\n", (long long)({name}));' for name in self.values]
        return "\n".join([*lines, TABLES, "return 0; }\n"])


def symbol_versions(library):
    out = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return dict(re.findall(r"(?m)^\S+ \w (lamella_\w+)@@(\w+\.\d+)$", out))


def facts(library):
    """Every fact as (kind and name, the rest)."""
    headers = Headers()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "record.c"
        source.write_text(headers.program(), encoding="utf-8")
        program = pathlib.Path(folder) / "record"
        subprocess.run(
            [
                *os.environ.get("CC", "cc").split(), "-std=c11", f"-I{ROOT}", str(source), "-o",
                str(program), str(library), f"-Wl,-rpath,{library.parent}",
            ],
            check=True,
        )  # fmt: skip
        printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    versions = symbol_versions(library)
    found = {}
    for line in headers.facts + printed.splitlines():
        kind, name, rest = line.split(" ", 2)
        if kind == "symbol":
            rest = f"{versions.get(name, 'without a version')}: {rest}"
        found[f"{kind} {name}"] = rest
    return found


def compare(recorded, found):
    number = "value LAMELLA_ABI_"
    recorded_minor, minor = int(recorded[number + "MINOR"]), int(found[number + "MINOR"])
    major = found[number + "MAJOR"]
    if recorded[number + "MAJOR"] != major:
        yield f"the record is of version {recorded[number + 'MAJOR']}: write it anew with --write"
        return
    for name, rest in recorded.items():
        if name != number + "MINOR" and found.get(name) != rest:
            now = f"is '{found[name]}'" if name in found else "is gone"
            yield f"{name}: was '{rest}', {now}; this takes a new LAMELLA_ABI_MAJOR"
    for name in found.keys() - recorded.keys():
        if minor <= recorded_minor:
            yield f"{name}: is new, so LAMELLA_ABI_MINOR is to be more than {recorded_minor}"
        elif name.startswith("symbol ") and not found[name].startswith(f"LAMELLA_{major}.{minor}:"):
            yield f"{name}: is new, so its symbol version is to be LAMELLA_{major}.{minor}"


def main(library, write=None):
    found = facts(pathlib.Path(library).resolve())
    if write:
        lines = [f"{name} {rest}" for name, rest in sorted(found.items())]
        head = (
            "# What the C ABI promised at its last version; written by tools/check_abi.py --write."
        )
        RECORD.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
        return 0
    recorded = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines()[1:]:
        kind, name, rest = line.split(" ", 2)
        recorded[f"{kind} {name}"] = rest
    errors = sorted(compare(recorded, found))
    for error in errors:
        print(f"lamella/abi: {error}")
    return 1 if errors else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
