"""lamella.ops: every registered operator as lamella.ops.<namespace>.<name>[.<overload>]."""

from lamella import _C


class OpNamespace:
    """The operators of one namespace."""

    def __init__(self, name):
        self.__dict__["_name"] = name
        self.__dict__["__name__"] = f"lamella.ops.{name}"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            packet = _C._operator(f"{self._name}::{name}")
        except RuntimeError as error:
            # The error names what is near.
            raise AttributeError(str(error)) from None
        setattr(self, name, packet)
        return packet

    def __dir__(self):
        prefix = self._name + "::"
        names = {name for name, _ in _C._operator_names() if name.startswith(prefix)}
        return sorted(name[len(prefix) :] for name in names)

    def __iter__(self):
        return iter(dir(self))

    def __repr__(self):
        return f"<lamella.ops.{self._name}: {len(dir(self))} operators>"


class Ops:
    """All namespaces of operators."""

    __name__ = "lamella.ops"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self):
        return sorted({name.partition("::")[0] for name, _ in _C._operator_names()})

    def __iter__(self):
        return iter(dir(self))

    def load_library(self, path):
        """Loads a shared library of operators; see lamella.load_library()."""
        from lamella import load_library

        return load_library(path)

    def __repr__(self):
        return f"<lamella.ops: {', '.join(dir(self))}>"


ops = Ops()
