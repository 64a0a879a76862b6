#!/usr/bin/env python3
"""The include rule: a file includes its own room and the rooms below it, nothing else."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Room: the rooms directly below it. What those may include is allowed as well.
BELOW = {
    "core": [],
    "schema": ["core"],
    "dispatch": ["schema", "core"],
    "abi": ["dispatch", "core"],
    "api": ["dispatch", "core"],
    "kernels": ["api", "dispatch", "core"],
    "layers": ["api", "dispatch", "core"],
    "nn": ["layers", "api", "dispatch", "core"],
    "graph": ["layers", "api", "dispatch", "core"],
    # The rarer operators: a separate library that uses the others, and the kernels' threads.
    "more": ["lamella", "kernels"],
    "codegen": ["schema"],
    # lamella/*.h: the headers for users. Including one counts as including all that it includes.
    # A separate library that uses the kernels' threads, products and vector functions.
    "compiler": ["graph", "kernels"],
    "lamella": ["graph", "nn", "layers", "kernels", "api", "dispatch", "abi", "core"],
    "distributed": ["lamella", "core"],
    "compat": ["lamella"],
    "python": ["lamella", "abi", "kernels", "layers", "graph"],
}

# The C ABI's headers and its table of keys are plain C and include nothing above them, so every
# file may include them.
LEAVES = {
    "lamella/abi/abi.h",
    "lamella/abi/autocast.h",
    "lamella/abi/autograd.h",
    "lamella/abi/backend.h",
    "lamella/abi/loading.h",
    "lamella/abi/profiler.h",
    "lamella/abi/python.h",
    "lamella/abi/threads.h",
    "lamella/abi/vmap.h",
    "lamella/abi/dispatch_keys.def",
    "lamella/abi/policy.h",
}

# Generated headers that stand directly under lamella/, and the room they belong to.
GENERATED = {
    "lamella/native_functions.h": "kernels",
    "lamella/structured_kernels.h": "kernels",
    "lamella/python_names.h": "api",
}

# May include anything.
FREE = ("examples/", "tests/", "bench/", "tools/", "docs/")

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]((?:lamella|codegen|python|compat)/[^">]+)[">]')


def room_of(path):
    """The room a path from the root belongs to, or None."""
    if path in GENERATED:
        return GENERATED[path]
    parts = path.split("/")
    if path.startswith("lamella/graph/compiler/"):
        return "compiler"
    if parts[0] == "lamella":
        return parts[1] if len(parts) > 2 else "lamella"
    return parts[0] if parts[0] in BELOW else None


def allowed(room):
    seen, todo = {room}, list(BELOW[room])
    while todo:
        below = todo.pop()
        if below not in seen:
            seen.add(below)
            todo += BELOW[below]
    return seen


def reached(target, seen=None):
    """The header itself, or what it includes if it is one of lamella/*.h."""
    seen = set() if seen is None else seen
    if room_of(target) != "lamella" or not (ROOT / target).is_file():
        yield target
    elif target not in seen:
        seen.add(target)
        for line in (ROOT / target).read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match:
                yield from reached(match.group(1), seen)


def check(path, text):
    room = room_of(path)
    if room is None:
        return
    if room not in BELOW:
        yield f"{path}:1: folder lamella/{room} is not a room; tools/check_includes.py lists them"
        return
    ok = allowed(room)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        for target in reached(match.group(1)):
            other = room_of(target)
            if path in LEAVES and target not in LEAVES:
                yield f"{path}:{number}: {path} must not include {target}"
            elif target not in LEAVES and other not in ok:
                yield f"{path}:{number}: room {room} must not include room {other}"


def files():
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    try:
        out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        # Not a git checkout, as in an unpacked archive.
        paths = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    for path in paths:
        if path.endswith((".h", ".hpp", ".cpp", ".cc", ".c", ".inc")):
            if not path.startswith(FREE + ("build",)) and (ROOT / path).is_file():
                yield path


def main():
    errors = []
    for path in files():
        errors += check(path, (ROOT / path).read_text(encoding="utf-8"))
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
