"""The format of .pt files from before PyTorch 1.6, which pickles of tensors still hold.

A file is five pickles (a number that says what it is, a version, the machine, the object with its
storages as keys, and the keys in order), and then for each key the number of its elements and their
bytes. The sizes of the elements are known to the object alone, so it is read twice: first over
storages that are empty, to learn of them, and then over those of the file.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from typing import Any

import lamella
from lamella._storage import rebuild_tensor
from lamella.compat import _pickle_names
from lamella.compat._pickle_writer import STORAGE_NAMES, Writer
from lamella.compat.storage import TypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MACHINE = {
    "protocol_version": _VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class _Plain(pickle.Unpickler):
    """Numbers, text and containers: nothing that has a name."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"load: expected plain values, got '{module}.{name}'")


class _OldWriter(Writer):
    def persistent_id(self, obj: Any) -> Any:
        saved = super().persistent_id(obj)
        return saved if saved is None else (*saved, None)


def write(obj: Any, file: Any, protocol: int) -> None:
    """Writes an object in this format to a file that is open for writing."""
    text = io.BytesIO()
    for value in (_MAGIC, _VERSION, _MACHINE):
        pickle.dump(value, text, protocol)
    writer = _OldWriter(text, protocol)
    writer.dump(obj)
    pickle.dump(list(writer.storages), text, protocol)
    file.write(text.getvalue())
    for key, storage in writer.storages.items():
        dtype = writer.dtype_of(key)
        itemsize = dtype.itemsize if dtype in STORAGE_NAMES else 1
        file.write(struct.pack("<q", storage.nbytes() // itemsize))
        file.write(memoryview(storage._bytes))


class OldFile:
    """One file that is read.

    where: what errors call it. place: gives a storage and its device of memory and a location.
    reader: the unpickler, which asks this object for storages and whether it takes weights only.
    """

    # What a storage's name has: a part of another storage is the sixth.
    parts = 6

    def __init__(self, file: Any, where: Any, place: Any, weights_only: bool, reader: Any) -> None:
        self.file, self.where, self.place, self.reader = file, where, place, reader
        self.weights_only = weights_only
        self.known: dict[str, tuple[Any, int]] = {}
        self.memories: dict[str, Any] | None = None
        self.storages: dict[str, tuple[Any, Any]] = {}

    def _expect(self, right: bool, expected: str, got: str) -> None:
        if not right:
            raise RuntimeError(f"load: expected {expected}, got {got}, in {self.where}")

    def _object(self, text: bytes) -> Any:
        return self.reader(io.BytesIO(text), self).load()

    def _pickle(self) -> bytes:
        """The bytes of the next pickle, which nothing is made of."""
        begin = self.file.tell()
        for _ in pickletools.genops(self.file):
            pass
        end = self.file.tell()
        self.file.seek(begin)
        return bytes(self.file.read(end - begin))

    def read(self) -> Any:
        """The object."""
        try:
            return self._read()
        except (pickle.UnpicklingError, RuntimeError, MemoryError):
            raise
        except Exception as error:
            raise pickle.UnpicklingError(
                f"load: expected a pickle of PyTorch's, got {type(error).__name__}: {error}, in "
                f"{self.where}"
            ) from None

    def _read(self) -> Any:
        magic, version, machine = (_Plain(io.BytesIO(self._pickle())).load() for _ in range(3))
        self._expect(magic == _MAGIC, "a file of torch.save()", "another pickle")
        self._expect(version == _VERSION, f"the version {_VERSION}", repr(version)[:80])
        right = isinstance(machine, dict) and machine.get("little_endian") is True
        self._expect(right, "little-endian numbers", repr(machine)[:80])
        text = self._pickle()
        self._object(text)
        keys = _Plain(io.BytesIO(self._pickle())).load()
        right = isinstance(keys, list) and set(self.known) <= set(map(str, keys))
        self._expect(right, "the keys of all storages", repr(keys)[:80])
        self.storages.clear()
        self.memories = {}
        for key in map(str, keys):
            self._expect(key in self.known, "keys of storages", repr(key))
            dtype, count = self.known[key]
            head = self.file.read(8)
            self._expect(len(head) == 8, f"the storage '{key}'", "the end of the file")
            (found,) = struct.unpack("<q", head)
            self._expect(found == count, f"{count} elements of '{key}'", str(found))
            size = count * (1 if dtype is None else dtype.itemsize)
            data = self.file.read(size)
            self._expect(len(data) == size, f"{size} bytes of '{key}'", str(len(data)))
            memory = lamella.empty(size, dtype=lamella.uint8)
            if size:
                memoryview(memory)[:] = data
            self.memories[key] = memory
        made = self._object(text)
        if isinstance(made, _pickle_names.Stored):
            dtype = lamella.uint8 if made.dtype is None else made.dtype
            count = made.storage.nbytes() // dtype.itemsize
            return TypedStorage(rebuild_tensor(made.storage, dtype, 0, (count,), (1,)))
        return made

    def storage(
        self, key: Any, dtype: Any, location: Any, count: Any, part: Any = None
    ) -> _pickle_names.Stored:
        """A storage with the dtype that it was saved with; None where it is of bytes."""
        right = isinstance(location, str) and isinstance(count, int) and count >= 0
        self._expect(
            right, "a storage's key, location and size", f"{key!r}, {location!r}, {count!r}"
        )
        self._expect(part is None, "whole storages", f"a part, {part!r}")
        key = str(key)
        self.known.setdefault(key, (dtype, count))
        if key not in self.storages:
            if self.memories is None:
                size = count * (1 if dtype is None else dtype.itemsize)
                self.storages[key] = (
                    lamella.empty(size, dtype=lamella.uint8).untyped_storage(),
                    (lamella.device("cpu")),
                )
            else:
                self.storages[key] = self.place(self.memories[key], location)
        storage, device = self.storages[key]
        return _pickle_names.Stored(storage, dtype, device)
