"""lamella new: writes a complete operator project, which builds and passes its tests unchanged."""

from __future__ import annotations

import argparse
import keyword
import pathlib
import re
import shutil
import sys
from typing import Any

from lamella._cli._common import CommandError, write_json

_TEMPLATES = pathlib.Path(__file__).parent / "templates"
# The words that cannot name a namespace, Python's aside.
_CPP_KEYWORDS = frozenset(
    """alignas alignof asm auto bool case catch char char8_t char16_t char32_t concept const
    consteval constexpr constinit const_cast co_await co_return co_yield decltype default
    delete do double dynamic_cast enum explicit export extern false float friend goto inline
    int lamella long mutable namespace new noexcept nullptr operator private protected
    public register reinterpret_cast requires short signed sizeof static static_assert
    static_cast std struct switch template this thread_local throw true typedef typeid
    typename union unsigned using virtual void volatile wchar_t""".split()
)
# Reserved targets of CMake, and macros and functions of C that no namespace can be named as.
_TAKEN = frozenset(
    """all clean edit_cache help install package package_source rebuild_cache assert errno linux
    main stderr stdin stdout unix""".split()
)


def add_parser(parts: Any) -> None:
    parser = parts.add_parser(
        "new",
        help="start an operator project",
        description="Writes a complete project: an operator's declaration, its derivative, its "
        "kernel, a test, and the build files.",
    )
    parser.add_argument("name", metavar="NAME", help="name of the project and of its namespace")
    parser.add_argument(
        "directory", nargs="?", metavar="DIR", help="the new folder; by default NAME"
    )
    parser.add_argument("--json", action="store_true", help="print the folder and commands as JSON")
    parser.add_argument(
        "--wheel", action="store_true",
        help="make it a package too: `pip wheel .` builds one wheel for all versions of Python",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    name = options.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise CommandError(
            f"new: expected NAME to be lower-case letters, digits and '_', got '{name}'"
        )
    if keyword.iskeyword(name) or name in _CPP_KEYWORDS:
        raise CommandError(
            f"new: expected a name that is no keyword of Python or C++, got '{name}'"
        )
    if name in _TAKEN or name in getattr(sys, "stdlib_module_names", ()):
        raise CommandError(
            "new: expected a name that no module of Python, target of CMake or macro of C has, "
            f"got '{name}'"
        )
    if name in _namespaces():
        raise CommandError(f"new: expected a new namespace, got '{name}', which has operators")
    folder = pathlib.Path(options.directory or name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"new: expected '{folder}' to be empty or not to exist")
    folder.mkdir(parents=True, exist_ok=True)
    templates = [
        *_TEMPLATES.glob("*.in"),
        *(_TEMPLATES.glob("wheel/*.in") if options.wheel else []),
    ]
    for template in templates:
        text = template.read_text(encoding="utf-8")
        target = folder / template.name[: -len(".in")].replace("NAME", name)
        target.write_text(_filled(text, name), encoding="utf-8")
    if options.json:
        write_json({"folder": str(folder), "commands": commands(folder)})
        return 0
    print(f"{folder}: build and test it with")
    for line in commands(folder):
        print(f"  {line}")
    if options.wheel:
        print(f"one wheel for all versions of Python: pip wheel --no-build-isolation {folder}")
    if shutil.which("lamella") is None:
        print(f"the command lamella is found after: export PATH={prefix() / 'bin'}:$PATH")
    return 0


def _namespaces() -> set[str]:
    from lamella import _C

    return {name.partition("::")[0] for name, _ in _C._operator_names()}


def _filled(text: str, name: str) -> str:
    return text.replace("@NAME@", name).replace("@PREFIX@", str(prefix()))


def prefix() -> pathlib.Path:
    """The prefix where CMake finds Lamella: the package of a wheel, or the tree around it."""
    package = pathlib.Path(__file__).resolve().parent.parent
    return package if (package / "include").is_dir() else package.parents[2]


def commands(folder: pathlib.Path) -> list[str]:
    # CMake finds the interpreter of a virtual environment by itself only where it was activated.
    python = f" -DPython3_EXECUTABLE={sys.executable}" if sys.prefix != sys.base_prefix else ""
    return [
        f"cmake -S {folder} -B {folder / 'build'} -DCMAKE_PREFIX_PATH={prefix()}{python}",
        f"cmake --build {folder / 'build'}",
        f"ctest --test-dir {folder / 'build'} --output-on-failure",
    ]
