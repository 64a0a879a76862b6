#!/usr/bin/env python3
"""Builds the two extension modules of the package for another Python, for tools/gpu_bundle.sh.

usage: tools/gpu_extensions.py PYTHON OUT: compiles what build/ has compiled for its own Python,
with PYTHON's headers, below OUT, and links the modules there; what has not changed is kept. The
libraries themselves do not depend on Python.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def described(python: str) -> tuple[str, str]:
    """The folder of a Python's headers, and the end of its modules' names."""
    program = (
        "import sysconfig as s; print(s.get_paths()['include'], s.get_config_var('EXT_SUFFIX'))"
    )
    include, suffix = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    return include, suffix


def run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"tools/gpu_extensions.py: {shlex.join(command)}\n{done.stderr[-4000:]}")


def is_new(made: pathlib.Path, *inputs: pathlib.Path) -> bool:
    """Whether a file is newer than its inputs and what the compiler listed as read for them."""
    if not made.exists():
        return False
    read = list(inputs)
    for listed in (pathlib.Path(f"{one}.d") for one in (made, *inputs)):
        if listed.exists():
            words = listed.read_text().replace("\\\n", " ").split()
            read += [BUILD / word for word in words if not word.endswith(":")]
    return all(one.exists() and one.stat().st_mtime <= made.stat().st_mtime for one in read)


def build(target: str, include: str, suffix: str, out: pathlib.Path) -> None:
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    rows = json.loads((BUILD / "compile_commands.json").read_text())
    rows = [row for row in rows if f" python/CMakeFiles/{target}.dir/" in row["command"]]
    header = folder / "headers.hxx"
    shutil.copy2(BUILD / "python" / "CMakeFiles" / f"{target}.dir" / "cmake_pch.hxx", header)
    objects, commands = [], []
    for row in rows:
        command = shlex.split(row["command"])
        own = re.compile(r".*/include/python3\.\d+$")
        command = [include if own.match(word) else word for word in command]
        source = pathlib.Path(command[-1])
        is_header = source.name.endswith(".hxx.cxx")
        made = folder / ("headers.hxx.gch" if is_header else source.name + ".o")
        command[command.index("-include") + 1] = str(header)
        command[command.index("-o") + 1] = str(made)
        if is_header:
            # The header alone: with -include of itself it would be read twice.
            at = command.index("-include")
            command = [*command[:at], *command[at + 2 : -1], str(header)]
        command[1:1] = ["-MD", "-MF", f"{made}.d"]
        if is_new(made, *([] if is_header else [source, folder / "headers.hxx.gch"])):
            objects += [] if is_header else [made]
            continue
        if is_header:
            run(command)
        else:
            objects.append(made)
            commands.append(command)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or 0) or None) as pool:
        list(pool.map(run, commands))
    libraries = ["lib/liblamella_graph.so.0.1"] if target == "_hlo" else []
    run(
        ["c++", "-shared", "-s", "-o", str(out / (target + suffix)), *map(str, objects)]
        + ["-Wl,-rpath,$ORIGIN/lib:$ORIGIN/../..", *libraries, "lib/liblamella.so.1", "-ldl"]
    )


def main(python: str, out: str) -> None:
    include, suffix = described(python)
    for target in ("_C", "_hlo"):
        build(target, include, suffix, pathlib.Path(out).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
