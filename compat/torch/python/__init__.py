"""PyTorch's module names for programs that import them: ``lamella.compat.install()``.

After it, ``import torch`` gives Lamella's names, and ``import torch.x.y`` the module lamella.x.y.
The parts of PyTorch that are not operators and that Lamella itself lacks, such as
``torch.utils.data``, are modules of this package. Nothing else imports them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import lamella
from lamella.compat.torch_version import TorchVersion

# The PyTorch version whose names and signatures this package has.
VERSION = TorchVersion("2.13.0")


# The hooks that install() installs besides the modules of torch.
_TAKEN = ("torch", "functorch")


def _find_name(module: ModuleType, name: str) -> Any:
    """Finds a name of the module torch: first in this package, then in Lamella."""
    if name == "__all__":
        return _list_public_names(module)
    if name.startswith("__") and name not in ("__config__", "__future__"):
        raise AttributeError(f"module 'torch' has no attribute '{name}'")
    from lamella.compat import _names

    if name in _names.top():
        found = _names.find(*_names.top()[name])
    elif find_module(name) is not None:
        return importlib.import_module(f"torch.{name}")
    else:
        try:
            found = getattr(lamella, name)
        except AttributeError:
            from lamella.compat import _absent

            raise _absent.missing(name, dir(module)) from None
    if name not in _names.CHANGING:
        # Caches the value, so that the next access does not come here.
        setattr(module, name, found)
    return found


def _list_names(module: ModuleType) -> list[str]:
    from lamella.compat import _names

    return sorted({*dir(lamella), *_names.top(), *vars(module)})


def _list_public_names(module: ModuleType) -> list[str]:
    """The names that `from torch import *` imports: all but modules."""
    names = [name for name in _list_names(module) if not name.startswith("_") and name != "slice"]
    return [name for name in names if not isinstance(getattr(module, name, module), ModuleType)]


@functools.cache
def find_module(tail: str) -> str | None:
    """The module that stands for torch.`tail`: this package's, else Lamella's, else a stand-in
    whose names can only be imported, else None."""
    from lamella.compat._names import HOLLOW, OWN, PART_OF

    own = tail in OWN
    tail = PART_OF.get(tail, tail)
    for name in (f"lamella.compat.{tail}", f"lamella.{tail}"):
        if own:
            continue
        if name in sys.modules:
            return name
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except (ModuleNotFoundError, AttributeError, ValueError):
            continue
    return f"torch.{tail}" if tail in HOLLOW else None


def lamella_module(tail: str) -> Any:
    """The module lamella.`tail`, or an empty object if there is no such module."""
    try:
        return importlib.import_module(f"lamella.{tail}")
    except ModuleNotFoundError:
        return object()


def _add_names(tail: str) -> None:
    """Adds the names that the modules of Lamella lack to torch.`tail` and to its parts."""
    from lamella.compat import _names

    for home, names in _names.ADDED.items():
        for name, place in names.items():
            if not f"{home}.{name}.".startswith(f"{tail}."):
                continue
            found = find_module(home)
            package, _, last = home.rpartition(".")
            # A path that is not a module is a class.
            owner = importlib.import_module(found) if found else _names.find(package, last)
            if name not in vars(owner):
                setattr(owner, name, _names.find(*place))


def _name_modules() -> None:
    """Sets __module__ of the classes of lamella.nn, and of parameters, to torch.nn's modules, with
    whose names libraries compare it."""
    for kind in vars(lamella.nn).values():
        if isinstance(kind, type) and kind.__module__.startswith("lamella.nn."):
            module = sys.modules[kind.__module__]
            kind.__module__ = kind.__module__.replace("lamella", "torch", 1)
            sys.modules.setdefault(kind.__module__, module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("torch."):
            return None
        tail = fullname[len("torch.") :]
        if find_module(tail) is not None:
            return importlib.machinery.ModuleSpec(fullname, self)
        from lamella.compat import _absent

        parent = sys.modules.get(fullname.rpartition(".")[0])
        raise ModuleNotFoundError(_absent.text(tail, dir(parent)), name=fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        from lamella.compat import _hollow, _names

        tail = spec.name.removeprefix("torch.")
        name = find_module(tail)
        assert name is not None
        if name == spec.name:
            module = _hollow.module(tail)
        else:
            module = importlib.import_module(name)
        if not hasattr(module, "__path__") and any(
            other.startswith(f"{tail}.") for other in (*_names.HOLLOW, *_names.PART_OF)
        ):
            module.__path__ = []
        _add_names(tail)
        if tail == "nn":
            _name_modules()
        # The import system sets attributes of a module's spec, so the module keeps its own.
        self._kept = module.__spec__, module.__loader__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._kept

    def get_code(self, fullname: str) -> Any:
        """The code for ``python -m``: that of the module that stands for the name."""
        name = find_module(fullname.removeprefix("torch."))
        spec = importlib.util.find_spec(name) if name is not None else None
        getter = getattr(spec and spec.loader, "get_code", None)
        return getter(name) if getter is not None else None


def install() -> ModuleType:
    """Installs the modules and returns torch. RuntimeError if another torch is already imported."""
    module = sys.modules.get("torch")
    if isinstance(module, lamella._C._Package):
        return module
    if module is not None:
        raise RuntimeError("install: expected no imported torch, got PyTorch's own")
    from lamella.compat import (
        _modes,
        _old_signatures,
        _operators,
        _overload_members,
        _processes,
        _refusals,
        _shown_forms,
        _tensor_members,
        _torch_function,
        _wrapper_policy,
    )
    from lamella.utils import prefix

    _processes.install()
    _modes.install()
    _shown_forms.install()
    _operators.install()
    _overload_members.install()
    _tensor_members.install()
    _torch_function.install()
    _old_signatures.install()
    _wrapper_policy.install()
    _refusals.install()
    lamella._C._set_package("torch")
    module = lamella._C._Package("torch", "The names of PyTorch: lamella.compat's, then Lamella's.")
    module.__getattr__ = functools.partial(_find_name, module)
    module.__dir__ = functools.partial(_list_names, module)
    module.__version__ = VERSION
    # Build systems look for include/ and lib/ next to this file.
    module.__path__ = [prefix]
    module.__file__ = os.path.join(prefix, "__init__.py")
    module.__dict__["torch"] = module
    module.__spec__ = importlib.machinery.ModuleSpec(
        "torch", None, origin=module.__file__, is_package=True
    )
    sys.modules["torch"] = module
    functorch = importlib.import_module("lamella.compat._functorch")
    sys.modules["functorch"] = functorch
    sys.modules["functorch.experimental"] = sys.modules["functorch.compile"] = functorch
    # Imported now: a later import would replace the function torch.autograd.gradcheck.
    sys.modules["torch.autograd.gradcheck"] = importlib.import_module("lamella.autograd.gradcheck")
    sys.meta_path.insert(0, _Finder())
    return module


def uninstall() -> None:
    """Removes the modules again; the members added to tensors stay."""
    from lamella.compat import (
        _old_signatures,
        _processes,
        _refusals,
        _shown_forms,
        _torch_function,
    )

    _refusals.uninstall()
    _processes.uninstall()
    _shown_forms.uninstall()
    _old_signatures.uninstall()
    _torch_function.uninstall()
    lamella._C._set_package("lamella")
    for name in [name for name in sys.modules if name.partition(".")[0] in _TAKEN]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
