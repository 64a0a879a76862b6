"""PyTorch's module names for programs that import them: ``lamella.compat.install()``.

After it ``import torch`` gives Lamella's names, and ``import torch.x.y`` the module lamella.x.y.
What PyTorch has around its operators and Lamella has not, such as ``torch.cuda``, is in modules of
this package, which nothing else imports.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import lamella

# The version whose names and signatures these are.
VERSION = "2.13.0"


class _Names(ModuleType):
    """The module torch: names of this package first, then Lamella's."""

    __version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and _find(name) is not None:
            return importlib.import_module(f"torch.{name}")
        try:
            return getattr(lamella, name)
        except AttributeError:
            near = difflib.get_close_matches(name, dir(lamella), 1)
            hint = f"; the nearest is '{near[0]}'" if near else ""
            raise AttributeError(f"Lamella has no 'torch.{name}'{hint}") from None

    def __dir__(self) -> list[str]:
        return dir(lamella)


def _find(tail: str) -> str | None:
    """The module that stands for torch.`tail`: this package's, else Lamella's."""
    for name in (f"lamella.compat.{tail}", f"lamella.{tail}"):
        if name in sys.modules:
            return name
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ModuleNotFoundError:
            continue
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("torch.") or _find(fullname[len("torch.") :]) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = _find(spec.name[len("torch.") :])
        assert name is not None
        module = importlib.import_module(name)
        # Importing sets attributes of the module's spec: it keeps its own.
        self._kept = module.__spec__, module.__loader__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._kept


def install() -> ModuleType:
    """Puts the modules in place and returns torch. RuntimeError if another torch is imported."""
    module = sys.modules.get("torch")
    if isinstance(module, _Names):
        return module
    if module is not None:
        raise RuntimeError("install: expected no imported torch, got PyTorch's own")
    module = _Names("torch", __doc__)
    module.__path__ = []
    sys.modules["torch"] = module
    sys.meta_path.insert(0, _Finder())
    return module


def uninstall() -> None:
    """Takes the modules away again."""
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
