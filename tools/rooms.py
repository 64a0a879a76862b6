#!/usr/bin/env python3
"""The rooms of the tree: the one table of which folder may include which, and what lives there.

tools/check_includes.py holds the sources to it, and README.md's table is made from it:
`python tools/rooms.py --write` writes that anew, `--check` says whether it and docs/tour.md agree.
"""

from __future__ import annotations

import pathlib
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Room:
    folder: str
    # The rooms directly below, by folder. What those may include is allowed as well.
    below: tuple[str, ...]
    # What lives there, for README.md; rooms inside of others have none of their own.
    text: str = ""


_CALLS = ("lamella/api", "lamella/dispatch", "lamella/core")

ROOMS = (
    Room("ops", (), "the declarations of the operators, in YAML"),
    Room(
        "codegen",
        ("lamella/schema",),
        "`lamella-gen`, which turns declarations into C++ and `.pyi`",
    ),
    Room(
        "lamella/abi",
        ("lamella/dispatch", "lamella/core"),
        "the frozen C ABI that separately built operator libraries stand on",
    ),
    Room("lamella/core", (), "Tensor, Storage, Scalar, IValue, errors; knows no operator"),
    Room(
        "lamella/schema",
        ("lamella/core",),
        "the grammar of operator signatures: parse, print, compare",
    ),
    Room(
        "lamella/dispatch",
        ("lamella/schema", "lamella/core"),
        "dispatch keys, kernels, the Dispatcher, registration",
    ),
    Room(
        "lamella/api",
        ("lamella/dispatch", "lamella/core"),
        "generated functions and methods (in the build folder), and a little sugar",
    ),
    Room(
        "lamella/kernels",
        _CALLS,
        "composite, CPU and meta kernels; in `families/` those that few programs call, in"
        " `liblamella_more.so`, loaded at first use",
    ),
    Room("lamella/kernels/families", ("lamella", "lamella/kernels")),
    Room("lamella/layers", _CALLS, "one folder per dispatch-key layer"),
    Room(
        "lamella/graph",
        (
            "lamella/graph/client",
            "lamella/graph/compiler",
            "lamella/graph/lowering",
            "lamella/graph/stablehlo",
            "lamella/graph/view",
        ),
        "programs: HLO read, built, verified, compiled, run, drawn; custom calls;"
        " `liblamella_graph.so`, loaded at first use",
    ),
    Room("lamella/graph/hlo", ("lamella/layers", *_CALLS)),
    Room("lamella/graph/runtime", ("lamella/graph/hlo",)),
    Room("lamella/graph/builder", ("lamella/graph/hlo",)),
    Room("lamella/graph/view", ("lamella/graph/hlo",)),
    Room("lamella/graph/stablehlo", ("lamella/graph/builder",)),
    Room("lamella/graph/custom_call", ("lamella/graph/runtime",)),
    Room("lamella/graph/evaluate", ("lamella/graph/custom_call",)),
    Room("lamella/graph/lowering", ("lamella/graph/builder", "lamella/graph/custom_call")),
    Room("lamella/graph/passes", ("lamella/graph/evaluate",)),
    Room("lamella/graph/execute", ("lamella/graph/passes",)),
    # A library of its own, on the kernels' threads, products and vector functions.
    Room("lamella/graph/compiler", ("lamella/graph/execute", "lamella/kernels")),
    Room("lamella/graph/client", ("lamella/graph/execute", "lamella/graph/builder")),
    # lamella/*.h: what a user includes. Including one counts as including what it includes.
    Room("lamella", ("lamella/graph", "lamella/layers", "lamella/kernels", "lamella/abi", *_CALLS)),
    Room(
        "lamella/distributed",
        ("lamella", "lamella/core"),
        "process groups, collectives, sharding, checkpoints",
    ),
    Room(
        "lamella/bridge",
        ("lamella/abi", "lamella/graph/custom_call"),
        "operators in PyTorch and JAX: `liblamella_bridge.so`, which `lamella.bridge` loads",
    ),
    Room(
        "lamella/pjrt",
        ("lamella/graph",),
        "JAX's programs on Lamella: `liblamella_pjrt.so`, which JAX finds as a plugin",
    ),
    Room(
        "lamella/cuda",
        ("lamella", "lamella/core"),
        'the devices "cuda": `liblamella_cuda.so`, loaded at first use',
    ),
    Room(
        "python",
        ("lamella", "lamella/abi", "lamella/kernels", "lamella/layers", "lamella/graph"),
        "the extension module and the `lamella` package",
    ),
    Room(
        "compat/torch",
        ("lamella",),
        "behind the wall: PyTorch's headers (`include/`), what they stand on (`adapt/`), its"
        " modules in C++ (`nn/`), `lamella.compat` (`python/`)",
    ),
    Room("compat/torch/adapt", ("lamella",)),
    Room("compat/torch/nn", ("compat/torch/adapt", "lamella")),
    Room("compat/torch/include", ("compat/torch/nn", "compat/torch/adapt", "lamella")),
    Room("compat/xla", ("lamella",), "behind the wall: XLA's headers"),
)
BY_FOLDER = {room.folder: room for room in ROOMS}
# Folders that may include anything.
FREE = ("examples", "tests", "bench", "docs", "tools")
_REST = (
    "| `examples/` `tests/` `bench/` `docs/` `tools/`"
    " | complete small projects, tests by room, measurements |"
)
# Headers of compat/torch that are installed beside Lamella's own: how the name begins by which they
# are included, and the folder that they are in.
INSTALLED = (("lamella/nn/", "compat/torch/nn/"), ("lamella/", "compat/torch/adapt/"))


def room_of(path: str) -> Room | None:
    """The innermost room that a path from the root lies in."""
    folder = path
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if folder in BY_FOLDER:
            # lamella itself is the room of its headers alone.
            return BY_FOLDER[folder] if folder != "lamella" or path.count("/") == 1 else None
    return None


def allowed(room: Room) -> set[str]:
    """The folders of the rooms that a file of this one may include."""
    seen, todo = {room.folder}, list(room.below)
    while todo:
        below = todo.pop()
        if below not in seen:
            seen.add(below)
            todo += BY_FOLDER[below].below
    return seen


def _table() -> str:
    rows = [f"| `{room.folder}/` | {room.text} |" for room in ROOMS if room.text]
    return "\n".join(["| folder | what lives there |", "|---|---|", *rows, _REST]) + "\n"


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    begin = text.index("| folder | what lives there |")
    end = text.index("\n\n", begin) + 1
    if "--write" in sys.argv:
        readme.write_text(text[:begin] + _table() + text[end:], encoding="utf-8")
        return 0
    errors = []
    if text[begin:end] != _table():
        errors.append("README.md: its table of rooms differs; write it with tools/rooms.py --write")
    tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
    for room in ROOMS:
        if not (ROOT / room.folder).is_dir():
            errors.append(f"tools/rooms.py: no folder {room.folder}")
        if room.text and f"`{room.folder}" not in tour:
            errors.append(f"docs/tour.md: does not come through {room.folder}/")
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
