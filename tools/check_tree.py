#!/usr/bin/env python3
"""Rules of the tree: light public headers, nothing generated in git, file length, first lines, no
circles among the modules of the package."""

import ast
import re
import subprocess
import sys

from check_includes import located
from rooms import ROOT

GENERATED = ROOT / "build" / "generated"

# Standard headers that cost a user's translation unit most of its compile time.
HEAVY = {
    "algorithm",
    "complex",
    "functional",
    "iostream",
    "map",
    "memory",
    "mutex",
    "regex",
    "sstream",
    "unordered_map",
    "variant",
}
# Graphs are built by programs, not by the source of each operator: their headers may cost more.
# So may headers that replace PyTorch's, which include much of the standard library.
MAY_BE_HEAVY = (
    "lamella/graph/",
    "compat/torch/nn/",
    "compat/xla/xla/lamella_names.h",
    "compat/torch/include/torch/standard_headers.h",
    "compat/torch/include/torch/python_casters.h",
    "compat/torch/include/torch/unordered_map_values.h",
    "compat/torch/include/c10/util/Logging.h",
    "compat/torch/include/c10/util/flat_hash_map.h",
    "compat/torch/include/c10/util/order_preserving_flat_hash_map.h",
)
MAX_LINES = 600
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
CODE = (".h", ".hpp", ".cpp", ".cc", ".c", ".py", ".cmake", ".sh")


def tracked():
    try:
        out = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [path for path in out.splitlines() if (ROOT / path).is_file()]


def locate(name):
    for path in (ROOT / located(name), GENERATED / name):
        if path.is_file():
            return path
    return None


def public_headers():
    """Every header that lamella/*.h, the C ABI, the generated API or compat/ reaches."""
    todo = sorted((ROOT / "lamella").glob("*.h")) + [
        ROOT / "lamella/abi/abi.h",
        ROOT / "lamella/dispatch/load_library.h",
    ]
    todo += sorted((GENERATED / "lamella/api").rglob("*.h"))
    todo += sorted((ROOT / "compat").rglob("*.h"))
    for folder in ("ATen", "c10", "torch", "xla"):
        todo += sorted((ROOT / "build/compat/view" / folder).rglob("*.h"))
    seen = set()
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for line in path.read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match and match.group(2).startswith("lamella/"):
                target = locate(match.group(2))
                if target:
                    todo.append(target)
    return sorted(seen)


def check_light():
    for path in public_headers():
        name = path.relative_to(ROOT)
        if name.as_posix().startswith(MAY_BE_HEAVY):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1) == "<" and match.group(2) in HEAVY:
                yield f"{name}:{number}: a public header must not include <{match.group(2)}>"


def has_opening_comment(path, lines):
    """Whether the first lines say what the file is: a comment or a docstring of words,
    behind a #! line, #pragma once or guards at the most."""
    shell = path.endswith((".py", ".cmake", ".sh")) or path.endswith("CMakeLists.txt")
    for line in lines[:3]:
        line = line.strip()
        if line.startswith("#!") or not line or re.match(r"#\s*(pragma|ifndef|define)\b", line):
            continue
        opening = re.match(r'#|[rR]?"""' if shell else r"//|/\*", line)
        return bool(opening) and (len(line.strip('/* #"')) > 3 or line in ('"""', "/*", "/**"))
    return False


def check_files(paths):
    for path in paths:
        if path.startswith(("build/", "generated/")):
            yield f"{path}:1: generated files live in the build folder, not in git"
        if not path.endswith(CODE):
            continue
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        if not path.startswith(("codegen/templates/", "tests/", "tools/", "codegen/")):
            for number, line in enumerate(lines[:5], 1):
                if "enerated by lamella-gen" in line:
                    yield f"{path}:{number}: generated files live in the build folder, not in git"
        if len(lines) > MAX_LINES:
            yield f"{path}:{len(lines)}: {len(lines)} lines; split it by family (limit {MAX_LINES})"
        if lines and not has_opening_comment(path, lines):
            yield f"{path}:1: begin with a line or two saying what this file is"
        if path == "tools/check_tree.py":
            continue
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                yield f"{path}:{number}: unfinished work is not left in the tree"


def imported(name, path, modules):
    """The modules of the package that one imports, inside of functions too, and by importlib. The
    package itself is none: what is found in it when a function runs is there by then."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__"):
                found.add(node.args[0].value)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
    return (found & modules.keys()) - {name, "lamella"}


def check_circles():
    modules = {}
    packages = {"python/lamella": "lamella", "compat/torch/python": "lamella.compat"}
    for folder, package in packages.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    edges = {name: imported(name, path, modules) for name, path in modules.items()}
    done = set()

    def walk(name, above):
        if name in above:
            yield [*above[above.index(name) :], name]
        elif name not in done:
            for other in sorted(edges[name]):
                yield from walk(other, [*above, name])
            done.add(name)

    for name in sorted(modules):
        for circle in walk(name, []):
            yield f"{modules[name].relative_to(ROOT)}:1: a circle: {' -> '.join(circle)}"


def main():
    errors = list(check_light()) + list(check_files(tracked())) + list(check_circles())
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
