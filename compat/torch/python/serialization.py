"""torch.serialization: reads and writes PyTorch's .pt files.

A file is a zip archive with a pickle of the object, in which storages are keys, and with the bytes
of each storage. Files from before PyTorch 1.6 are not archives: see _legacy_files.py.
"""

from __future__ import annotations

import contextlib
import copyreg
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

import lamella
from lamella import Tensor
from lamella.compat import _legacy_files, _pickle_names
from lamella.compat._pickle_writer import Writer

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2
FILE_LIKE = Union[str, os.PathLike, Any]
MAP_LOCATION = Optional[Union[Callable[..., Any], lamella.device, str, dict[str, str]]]

# PyTorch's alignment of storages, which allows memory mapping.
_ALIGNMENT = 64


def location_tag(storage: Any) -> str:
    """The location of a storage, as files record it."""
    return str(storage.device)


def normalize_storage_type(storage_type: type) -> type:
    """The type itself, which already is a storage type."""
    return storage_type


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, for the location that a file records; RuntimeError if the device does not
    exist."""
    if not _is_there(lamella.device(location)):
        raise RuntimeError(
            f"default_restore_location: expected a device that is there, got {location}"
        )
    return storage


# ---- Writing


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes an object with its tensors to a .pt file, which PyTorch can read as well.

    obj: tensors, numbers, text, lists, dictionaries, and other objects that can be pickled. Tensors
    that share memory share it in the file. f: a path, which is replaced when the file is complete,
    or a binary file open for writing. _use_new_zipfile_serialization: False writes the format from
    before PyTorch 1.6.
    """
    zipped = _use_new_zipfile_serialization
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise TypeError(f"save: expected 'f' to be a path or a file, got {type(f).__name__}")
        _write(obj, f, "archive", pickle_protocol, zipped)
        return
    path = os.fspath(f)
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            name = os.path.splitext(os.path.basename(path))[0]
            _write(obj, file, name, pickle_protocol, zipped)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def _write(obj: Any, file: Any, name: str, protocol: int, zipped: bool) -> None:
    if not zipped:
        _legacy_files.write(obj, file, protocol)
        return
    text = io.BytesIO()
    writer = Writer(text, protocol)
    writer.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(entry: str, data: Any) -> None:
            info = zipfile.ZipInfo(f"{name}/{entry}")
            info.file_size = len(data)
            begin = archive.fp.tell() + 30 + len(info.filename.encode()) + 4  # type: ignore
            gap = -begin % _ALIGNMENT
            info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
            with archive.open(info, "w") as stream:
                stream.write(data)

        add("data.pkl", text.getvalue())
        add(".format_version", b"1")
        add(".storage_alignment", str(_ALIGNMENT).encode())
        add("byteorder", b"little")
        for key, storage in writer.storages.items():
            add(f"data/{key}", memoryview(storage._bytes))
        add("version", b"3\n")


# ---- Reading

_safe: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows further functions and classes in files; a pair gives one another name."""
    for entry in safe_globals:
        value, name = entry if isinstance(entry, tuple) else (entry, None)
        if name is None:
            name = f"{value.__module__}.{value.__qualname__}"
        module, _, last = name.rpartition(".")
        _safe[module, last] = value


def get_safe_globals() -> list[Any]:
    """The functions and classes given to add_safe_globals()."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Undoes add_safe_globals()."""
    _safe.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """A context in which add_safe_globals() is in effect."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
    **pickle_load_args: Any,
) -> Any:
    """Loads the object of a .pt file (PyTorch's or Lamella's), the values by name of a file of C++,
    or a safetensors file's tensors by name.

    f: a path, or a binary file open for reading. map_location: a device for all storages, a
    dictionary of locations, or a function of a storage and its location. weights_only: False also
    allows classes of modules that are already imported, NumPy's arrays and plain containers; other
    classes and functions must be given to add_safe_globals() first. encoding: of text written by
    Python 2. Raises UnpicklingError for a file that refers to anything else, RuntimeError for a
    damaged one.
    """
    weights_only = weights_only is not False
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            begin = file.read(9)
            file.seek(0)
            if begin[8:] == b"{":  # safetensors: the header comes after its length
                return lamella.load(f, "cpu" if map_location is None else map_location)
            return _Source(file, os.fspath(f), map_location, weights_only, encoding).read()
    if not hasattr(f, "read"):
        raise TypeError(f"load: expected 'f' to be a path or a file, got {type(f).__name__}")
    data = f if getattr(f, "seekable", lambda: False)() else io.BytesIO(f.read())
    if data is f and f.tell():
        data = io.BytesIO(f.read())  # offsets in a zip archive count from its own start
    where = getattr(f, "name", "the file")
    return _Source(data, where, map_location, weights_only, encoding).read()


def _load_from_bytes(b: bytes) -> Any:
    """Loads the contents of a pickle of one of PyTorch's storages."""
    return load(io.BytesIO(b), weights_only=False)


class _Archive:
    """The parts of a zip archive: its pickle, and the bytes of each storage."""

    def __init__(self, file: Any, source: _Source) -> None:
        self.source = source
        try:
            self.archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(
                f"load: expected a file of torch.save(), got {error}, in {source.where}"
            ) from None
        self.entries = {info.filename: info for info in self.archive.infolist()}
        roots = [name[: -len("data.pkl")] for name in self.entries if name.endswith("/data.pkl")]
        source.expect(len(roots) == 1, "one entry 'data.pkl'", str(len(roots)))
        self.root = roots[0]
        # Programs of torch.jit.save() are such archives as well; their classes have other names.
        source.of_cpp = f"{self.root}constants.pkl" in self.entries
        order = self._bytes("byteorder") if f"{self.root}byteorder" in self.entries else b"little"
        source.expect(order == b"little", "little-endian numbers", repr(order.decode("latin1")))

    def _bytes(self, entry: str) -> bytes:
        try:
            return self.archive.read(self.root + entry)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
            raise RuntimeError(
                f"load: expected a readable entry '{entry}', got {error}, in {self.source.where}"
            ) from None

    def pickled(self) -> io.BytesIO:
        return io.BytesIO(self._bytes("data.pkl"))

    def memory(self, key: Any, size: int) -> Tensor:
        expect = self.source.expect
        info = self.entries.get(f"{self.root}data/{key}")
        expect(info is not None, f"an entry 'data/{key}'", "none")
        assert info is not None
        expect(info.file_size == size, f"{size} bytes at 'data/{key}'", str(info.file_size))
        memory = lamella.empty(size, dtype=lamella.uint8)
        if size:
            data = self._bytes(f"data/{key}")
            expect(len(data) == size, f"{size} bytes at 'data/{key}'", str(len(data)))
            memoryview(memory)[:] = data
        return memory


class _Source:
    """A file being read: each storage is loaded once and kept by its key."""

    def __init__(
        self, file: Any, where: Any, map_location: Any, weights_only: bool, encoding: str
    ) -> None:
        self.where, self.map_location = where, map_location
        self.weights_only, self.encoding = weights_only, encoding
        self.storages: dict[str, tuple[Any, Any]] = {}
        self.of_cpp = False
        begin = file.read(1)
        file.seek(0)
        kind: Any = _legacy_files.Entries if begin == b"\x80" else _Archive
        self.entries = kind(file, self)

    def expect(self, right: bool, expected: str, got: str) -> None:
        if not right:
            raise RuntimeError(f"load: expected {expected}, got {got}, in {self.where}")

    def read(self) -> Any:
        found = self.unpickled(self.entries.pickled())
        return found.values if isinstance(found, _pickle_names.CppArchive) else found

    def unpickled(self, file: Any, notes: Any = None) -> Any:
        """Unpickles an object. notes: records the types of storages, which are then not read."""
        begin = file.tell()
        try:
            try:
                return _Reader(file, self, notes).load()
            except _NeedsCare:
                file.seek(begin)
                return _CarefulReader(file, self, notes).load()
        except (RuntimeError, MemoryError):
            raise
        except Exception as error:
            if str(error).startswith("load: "):
                raise
            raise pickle.UnpicklingError(
                f"load: expected a pickle of PyTorch's, got {type(error).__name__}: {error}, in "
                f"{self.where}"
            ) from None

    def storage(self, key: Any, dtype: Any, location: Any, count: Any) -> _pickle_names.Stored:
        """A storage with its saved dtype; a dtype of None means bytes."""
        right = isinstance(key, str) and isinstance(location, str) and isinstance(count, int)
        self.expect(
            right, "a storage's key, location and size", f"{key!r}, {location!r}, {count!r}"
        )
        dtype = lamella.uint8 if dtype is None else dtype
        if key not in self.storages:
            memory = self.entries.memory(key, count * dtype.itemsize)
            self.storages[key] = self._placed(memory, location)
        storage, device = self.storages[key]
        return _pickle_names.Stored(storage, dtype, device)

    def _placed(self, memory: Tensor, location: str) -> tuple[Any, Any]:
        """The storage, mapped to a location, and the device of the tensors over it."""
        storage = memory.untyped_storage()
        target = self.map_location
        if isinstance(target, dict):
            target = target.get(location, location)
        elif callable(target):
            made = target(storage, location)
            if made is not None:
                return made, made.device
            target = location
        elif target is None:
            target = location
        device = lamella.device(target)
        if device.type not in ("cpu", "meta") and not _is_there(device):
            raise RuntimeError(
                f"load: expected a device for the storages of '{location}', got none; "
                f"map_location='cpu' puts them into memory, in {self.where}"
            )
        return storage, device


def _is_there(device: Any) -> bool:
    from lamella._device import find_module

    return find_module(device.type) is not None


# The Python implementation, whose methods can be overridden; type stubs do not declare them.
_SlowUnpickler: Any = pickle._Unpickler


class _NeedsCare(Exception):
    """A pickle refers to a class whose objects it may create but which it must not call."""


class _Names:
    """Resolves the names and storages that a pickle refers to."""

    source: _Source
    notes: Any

    def make_only(self, found: Any) -> None:
        raise _NeedsCare

    def persistent_load(self, saved: Any) -> Any:
        expect = self.source.expect
        if isinstance(saved, tuple) and len(saved) == 4 and saved[0] == "module":
            return saved[1]  # a module class, pickled with its source
        right = isinstance(saved, tuple) and len(saved) in (5, 6) and saved[0] == "storage"
        expect(right, "the name of a storage", repr(saved)[:80])
        expect(len(saved) == 5 or saved[5] is None, "whole storages", "a view of one")
        kind = saved[1]
        expect(isinstance(kind, _pickle_names.StorageType), "a storage's type", repr(kind)[:80])
        if self.notes is None:
            return self.source.storage(saved[2], kind.dtype, saved[3], saved[4])
        dtype = lamella.uint8 if kind.dtype is None else kind.dtype
        self.notes.note(saved[2], dtype.itemsize)
        memory = lamella.empty(0, dtype=lamella.uint8).untyped_storage()
        return _pickle_names.Stored(memory, dtype, lamella.device("meta"))

    def find_class(self, module: str, name: str) -> Any:
        found: Callable[..., Any] | None = _safe.get((module, name))
        if self.source.of_cpp and module.startswith("__torch__"):
            right = name == "Module" and "." not in module.removeprefix("__torch__.")
            self.source.expect(right, "a file of torch.save()", "a program of torch.jit.save()")
            return _pickle_names.CppArchive
        if found is None:
            found = _pickle_names.find(module, name)
        if found is None and not self.source.weights_only:
            found = _pickle_names.find_trusted(module, name)
            if found is None:
                found = _pickle_names.find_made(module, name)
                if found is not None:
                    self.make_only(found)
        if found is None:
            raise pickle.UnpicklingError(
                f"load: expected a name of the allow-list, got '{module}.{name}', in "
                f"{self.source.where}; nothing of it was run. If the file is to be trusted, "
                "torch.serialization.add_safe_globals([...]) allows it"
            )
        return found


class _Reader(_Names, pickle.Unpickler):
    def __init__(self, text: Any, source: _Source, notes: Any) -> None:
        super().__init__(text, encoding=source.encoding)
        self.source, self.notes = source, notes


class _CarefulReader(_Names, _SlowUnpickler):
    """A slower reader, which checks every call that the pickle makes."""

    dispatch = dict(_SlowUnpickler.dispatch)

    def __init__(self, text: Any, source: _Source, notes: Any) -> None:
        super().__init__(text, encoding=source.encoding)
        self.source, self.notes = source, notes
        self.named: list[Any] = []
        self.made_only: list[Any] = []

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        self.named.append(found)
        return found

    def make_only(self, found: Any) -> None:
        self.made_only.append(found)

    def _instantiate(self, klass: Any, args: Any) -> None:
        made = klass.__new__(klass) if klass in self.made_only else self._called(klass, args)
        self.append(made)

    def _called(self, function: Any, args: Any) -> Any:
        # _reconstructor calls its second argument's __init__; _method calls nothing.
        calls = [function] if function is not _pickle_names._method else []
        if function is copyreg._reconstructor:  # type: ignore[attr-defined]
            calls.extend(args[1:2])
        named = any(function is each for each in self.named)
        if not named or any(called is each for called in calls for each in self.made_only):
            what = getattr(function, "__name__", type(function).__name__)
            raise pickle.UnpicklingError(
                f"load: expected the objects of '{what}' to be made without a call, got a call, in "
                f"{self.source.where}. If the file is to be trusted, "
                "torch.serialization.add_safe_globals([...]) allows it"
            )
        return function(*args)

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self._called(self.stack[-1], args)

    dispatch[pickle.REDUCE[0]] = load_reduce
