#!/usr/bin/env python3
"""The include rule: a file includes its own room and the rooms below it, as tools/rooms.py says.

And the wall: a header in front of compat/ that only compat/ includes belongs behind it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from rooms import FREE, INSTALLED, ROOT, allowed, room_of

# The C ABI's headers, its table of keys and the table of opcodes include nothing above them, so
# every room may include them.
LEAVES = {
    "lamella/abi/abi.h",
    "lamella/abi/autocast.h",
    "lamella/abi/autograd.h",
    "lamella/abi/backend.h",
    "lamella/abi/loading.h",
    "lamella/abi/operators.h",
    "lamella/abi/profiler.h",
    "lamella/abi/python.h",
    "lamella/abi/threads.h",
    "lamella/abi/vmap.h",
    "lamella/abi/dispatch_keys.def",
    "lamella/abi/policy.h",
    "lamella/graph/hlo/opcode.def",
}

# Generated headers that stand directly under lamella/, and the room they belong to.
GENERATED = {
    "lamella/native_functions.h": "lamella/kernels/",
    "lamella/structured_kernels.h": "lamella/kernels/",
    "lamella/python_names.h": "lamella/api/",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]((?:lamella|codegen|python|compat)/[^">]+)[">]')
# The tables of headers that only include others (cmake/ForwardingHeaders.cmake).
FORWARDS = "forwards.txt"
FORWARDED = re.compile(r"(lamella/\S+\.h)$")


def located(name: str) -> str:
    """The path of a header from the root, by the name it is included by."""
    if name == "lamella/nn.h":
        return "compat/torch/nn/nn.h"
    for named, folder in INSTALLED:
        if name.startswith(named) and not (ROOT / name).is_file():
            if (ROOT / folder / name[len(named) :]).is_file():
                return folder + name[len(named) :]
    return name


def included(path: str, text: str | None = None) -> Iterator[tuple[int, str]]:
    """The project's headers that a file includes, with their lines."""
    text = (ROOT / path).read_text(encoding="utf-8") if text is None else text
    for number, line in enumerate(text.splitlines(), 1):
        if path.endswith(FORWARDS):
            matches = [FORWARDED.match(word) for word in line.split()]
        else:
            matches = [INCLUDE.match(line)]
        for match in filter(None, matches):
            yield number, located(match.group(1))


def is_public(path: str) -> bool:
    return path.startswith("lamella/") and path.count("/") == 1 and (ROOT / path).is_file()


def reached(target: str, seen: set[str] | None = None) -> Iterator[str]:
    """The header itself, or what it includes if it is one of lamella/*.h."""
    seen = set() if seen is None else seen
    if not is_public(target):
        yield target
    elif target not in seen:
        seen.add(target)
        for _, other in included(target):
            yield from reached(other, seen)


def check(path: str) -> Iterator[str]:
    room = room_of(path)
    if room is None:
        if path.startswith("lamella/"):
            yield f"{path}:1: this folder is no room; tools/rooms.py lists them"
        return
    ok = allowed(room)
    for number, name in included(path):
        for target in reached(name):
            other = room_of(GENERATED.get(target, target))
            if path in LEAVES and target not in LEAVES:
                yield f"{path}:{number}: {path} must not include {target}"
            elif target not in LEAVES and (other is None or other.folder not in ok):
                yield f"{path}:{number}: room {room.folder} must not include {target}"


def files() -> Iterator[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    try:
        out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        # Not a git checkout, as in an unpacked archive.
        paths = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    for path in paths:
        if path.endswith((".h", ".hpp", ".cpp", ".cc", ".c", ".inc", FORWARDS)):
            if not path.startswith("build") and (ROOT / path).is_file():
                yield path


def check_wall(paths: list[str]) -> Iterator[str]:
    """Headers in front of the wall that only files behind it include, or other such headers."""
    users: dict[str, set[str]] = {}
    for path in paths:
        for _, target in included(path):
            users.setdefault(target, set()).add(path)

    only: set[str] = set()

    def is_only_for_compat(path: str) -> bool:
        by = {user for user in users[path] if not user.startswith(FREE)}
        by.discard(path.rpartition(".")[0] + ".cpp")
        return bool(by) and all(user.startswith("compat/") or user in only for user in by)

    inner = {path for path in users if path.startswith("lamella/") and path.count("/") > 1}
    while found := {path for path in inner - only if is_only_for_compat(path)}:
        only |= found
    for path in sorted((only & set(paths)) - LEAVES):
        yield f"{path}:1: only compat/ includes it: it belongs behind the wall"


def main() -> int:
    paths = list(files())
    errors: list[str] = []
    for path in paths:
        if not path.startswith(tuple(f"{folder}/" for folder in FREE)):
            errors += check(path)
    errors += check_wall(paths)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
