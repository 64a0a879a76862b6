"""Bundles: folders that a failed compilation or run writes, so that the failure can be replayed.

A bundle has the module's text, the inputs, the options, the versions of packages, and the error.
The environment variable LAMELLA_BUNDLES names the folder for bundles (by default one in the
temporary directory), or is "off". The newest bundles are kept: at most 20, and 1 GiB in total.
Replaying a bundle may load code that it names, see `code_of`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import os
import platform as machine
import shlex
import shutil
import sys
import tempfile
import time
import types
from typing import Any

import lamella
from lamella import _hlo
from lamella.hlo import _npy
from lamella.hlo._targets import register_custom_call_target

_KEPT = 20
_LARGEST_FOLDER = 1 << 30  # bytes of all bundles
_LARGEST_INPUTS = 256 << 20  # bytes of all inputs of a bundle, and of its text
_LARGEST_FACTS = 16 << 20  # bytes of a bundle.json
_ABANDONED = 3600  # seconds after which an incomplete bundle is deleted
_FORMAT = 1


def folder() -> str | None:
    """The folder for bundles; None if they are switched off."""
    named = os.environ.get("LAMELLA_BUNDLES")
    if named is not None:
        return None if named.lower() in ("", "0", "off") else named
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return os.path.join(tempfile.gettempdir(), f"lamella-bundles-{user}")


def on_failure(executable: Any, inputs: Any, error: Exception) -> None:
    """Called when a run fails. inputs: a tensor for each array; None if they are too large."""
    note(error, executable.module, None, "run", {"platform": executable.platform}, inputs)


def note(
    error: Exception,
    module: Any,
    text: str | None,
    stage: str,
    options: dict[str, Any],
    inputs: Any = (),
) -> None:
    """Writes a bundle, and appends to the error's text how to replay it. Never raises."""
    with contextlib.suppress(Exception):
        place = folder()
        if place is None or getattr(error, "_lamella_bundle", None) is not None:
            return
        path, complete = _write(place, error, module, text, stage, options, inputs)
        with contextlib.suppress(Exception):
            error._lamella_bundle = path  # type: ignore[attr-defined]
        above = _size(_LARGEST_INPUTS)
        without = "" if complete else f"without the inputs, which are above {above}; "
        bounds = f"at most {_KEPT} such folders and {_size(_LARGEST_FOLDER)} are kept"
        _append(error, f"To replay it ({without}{bounds}):\nlamella hlo run {shlex.quote(path)}")


def _size(count: int) -> str:
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def _append(error: Exception, line: str) -> None:
    if len(error.args) == 1 and isinstance(error.args[0], str) and not isinstance(error, KeyError):
        error.args = (f"{error.args[0]}\n{line}",)
    elif hasattr(error, "add_note"):
        error.add_note(line)


def _write(
    place: str,
    error: Exception,
    module: Any,
    text: str | None,
    stage: str,
    options: dict[str, Any],
    inputs: Any,
) -> tuple[str, bool]:
    """The bundle's folder, and whether it holds the inputs."""
    os.makedirs(place, mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and os.stat(place).st_uid != os.getuid():
        raise PermissionError(f"{place}: expected a folder that belongs to this user")
    kept = text if text is not None else module.to_string()
    if len(kept) > _LARGEST_INPUTS:
        raise ValueError(f"expected a text of at most {_LARGEST_INPUTS} characters")
    targets = _targets_of(module, options["platform"]) if module is not None else []
    # The folder is renamed when it is complete.
    partial = tempfile.mkdtemp(prefix=".partial-", dir=place)
    try:
        with open(os.path.join(partial, "module.hlo"), "w", encoding="utf-8") as file:
            file.write(kept)
        total = sum(one.numel() * one.dtype.itemsize for one in inputs or ())
        complete = inputs is not None and total <= _LARGEST_INPUTS
        if complete:
            for i, one in enumerate(inputs):
                _npy.save(os.path.join(partial, f"input_{i}.npy"), one)
        facts = {
            "format": _FORMAT,
            "stage": stage,
            "options": options,
            "inputs": len(inputs) if inputs is not None and complete else None,
            "targets": targets,
            "error": {"type": type(error).__name__, "text": str(error)},
            "versions": _versions(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        with open(os.path.join(partial, "bundle.json"), "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=2)
            file.write("\n")
        path = _name(place, module)
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _forget_old(place)
    return path, complete


def _targets_of(module: Any, platform: str) -> list[dict[str, Any]]:
    """The locations of the functions that are registered for the module's custom calls."""
    names = {
        instruction.attributes.get("custom_call_target")
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "custom-call"
    }
    targets = []
    for entry in _hlo._list_targets():
        if entry["name"] not in names or entry["built_in"]:
            continue
        call = entry.pop("function")
        if call is not None:
            function = getattr(call, "function", call)
            entry["python"] = [
                getattr(function, "__module__", None),
                getattr(function, "__qualname__", None),
                getattr(getattr(function, "__code__", None), "co_filename", None),
            ]
        targets.append(entry)
    return targets


def code_of(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets for which a replay would load code: those that are not yet registered."""
    here = {(entry["name"], entry["platform"]) for entry in _hlo._list_targets()}
    return [entry for entry in facts["targets"] if (entry["name"], entry["platform"]) not in here]


def describe(entry: dict[str, Any]) -> str:
    """Describes the location of a target's code, for the user to decide whether to trust it."""
    if entry["kind"] == "python":
        module, name, file = entry["python"]
        source = f" ({file})" if file else ""
        return f"'{entry['name']}': Python's {module}.{name}{source}"
    places = [place for place in entry["places"].values() if place is not None]
    listed = ", ".join(f"{library} at byte {offset}" for library, offset in places)
    return f"'{entry['name']}': machine code of {listed or 'nowhere'}"


def restore(entry: dict[str, Any]) -> None:
    """Loads the code of a target and registers it. This runs code that the bundle names, so the
    bundle must come from a trusted source."""
    if entry["kind"] == "python":
        function: Any = _module_named(entry["python"][0], entry["python"][2])
        for part in entry["python"][1].split("."):
            function = getattr(function, part)
        register_custom_call_target(entry["name"], function, entry["platform"], replace=True)
        return
    addresses = {
        stage: _hlo._address_of(*place)
        for stage, place in entry["places"].items()
        if place is not None
    }
    if entry["kind"] == "typed":
        register_custom_call_target(entry["name"], addresses, entry["platform"], api_version=1)
    else:
        address = addresses["execute"]
        register_custom_call_target(entry["name"], address, entry["platform"], replace=True)


def _module_named(name: str, file: str | None) -> Any:
    """Imports the module of a function; if that fails, runs the definitions in its file."""
    if name != "__main__":
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    if file is None:
        raise ImportError(f"no module {name}")
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read(), file)
    # Runs only imports, definitions and constants, not the program's other statements.
    tree.body = [node for node in tree.body if _only_defines(node)]
    found = types.ModuleType("__lamella_replay__")
    found.__file__ = file
    exec(compile(tree, file, "exec"), found.__dict__)
    return found


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    return isinstance(
        node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    )


def _name(place: str, module: Any) -> str:
    title = module.name if module is not None else "text"
    title = "".join(c if c.isalnum() or c in "-_." else "_" for c in title)[:40]
    stem = os.path.join(place, f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{title}")
    path, number = stem, 1
    while os.path.exists(path):
        number += 1
        path = f"{stem}-{number}"
    return path


def _forget_old(place: str) -> None:
    bundles = []
    for entry in os.scandir(place):
        if not entry.is_dir(follow_symlinks=False):
            continue
        if entry.name.startswith(".partial-"):
            if entry.stat(follow_symlinks=False).st_mtime < time.time() - _ABANDONED:
                shutil.rmtree(entry.path, ignore_errors=True)
        elif os.path.isfile(os.path.join(entry.path, "bundle.json")):
            bundles.append(entry.path)
    bundles.sort(key=lambda path: (os.stat(path).st_mtime_ns, path), reverse=True)
    total = 0
    for number, path in enumerate(bundles):
        total += sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(path))
        if number >= _KEPT or (number > 0 and total > _LARGEST_FOLDER):
            shutil.rmtree(path, ignore_errors=True)


def _versions() -> dict[str, str]:
    versions = {
        "lamella": lamella.__version__,
        "python": machine.python_version(),
        "machine": machine.platform(),
    }
    for name in ("numpy", "ml_dtypes", "jax", "jaxlib", "torch"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions[name] = str(version)
    return versions


def read(path: str) -> dict[str, Any]:
    """The contents of a bundle's bundle.json; ValueError if it is not a bundle. Loads no code."""
    try:
        name = os.path.join(path, "bundle.json")
        with open(name, encoding="utf-8") as file:
            text = file.read(_LARGEST_FACTS + 1)
        if len(text) > _LARGEST_FACTS:
            raise ValueError(f"more than {_LARGEST_FACTS} characters")
        facts = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected a bundle, got {error}") from None
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        got = facts.get("format") if isinstance(facts, dict) else "something else"
        raise ValueError(f"{path}: expected a bundle of format {_FORMAT}, got {got}")
    options, inputs, targets = (facts.get(key) for key in ("options", "inputs", "targets"))
    right = {
        "options": isinstance(options, dict) and isinstance(options.get("platform"), str),
        "inputs": inputs is None or (type(inputs) is int and inputs >= 0),
        "targets": isinstance(targets, list) and all(map(_is_target, targets)),
    }
    for key, fits in right.items():
        if not fits:
            raise ValueError(f"{path}: expected a bundle whose bundle.json has a valid '{key}'")
    return facts


def _is_target(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    if not all(isinstance(entry.get(key), str) for key in ("name", "platform", "kind")):
        return False
    if entry["kind"] == "python":
        parts = entry.get("python")
        return (
            isinstance(parts, list)
            and len(parts) == 3
            and all(isinstance(part, str) for part in parts[:2])
            and (parts[2] is None or isinstance(parts[2], str))
        )
    places = entry.get("places")
    return isinstance(places, dict) and all(
        place is None
        or (
            isinstance(place, list)
            and len(place) == 2
            and isinstance(place[0], str)
            and type(place[1]) is int
            and 0 <= place[1] < 1 << 63
        )
        for place in places.values()
    )
