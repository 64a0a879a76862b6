"""Files that torch.save() wrote before PyTorch 1.6, which are not zip archives.

A file is a sequence of pickles: a magic number, the protocol version, system information, the
object, and the keys of its storages. The storages follow, each as a count and its elements.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat._pickle_writer import Writer

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_SYSTEM = {
    "protocol_version": _VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def write(obj: Any, file: Any, protocol: int) -> None:
    """Writes an object with its tensors."""
    text = io.BytesIO()
    writer = Writer(text, protocol, legacy=True)
    writer.dump(obj)
    for head in (_MAGIC, _VERSION, _SYSTEM):
        pickle.dump(head, file, protocol)
    file.write(text.getvalue())
    keys = sorted(writer.storages)
    pickle.dump(keys, file, protocol)
    for key in keys:
        storage = writer.storages[key]
        file.write(struct.pack("<q", storage.nbytes() // writer.itemsizes[key]))
        file.write(memoryview(storage._bytes))


class Entries:
    """The parts of such a file: the object's pickle, and the bytes of each storage."""

    def __init__(self, file: Any, source: Any) -> None:
        self.file, self.source = file, source
        begin = source.unpickled(file)
        source.expect(begin == _MAGIC, "a file of torch.save()", "another pickle")
        version = source.unpickled(file)
        source.expect(version == _VERSION, f"version {_VERSION}", repr(version)[:20])
        system = source.unpickled(file)
        known = isinstance(system, dict) and system.get("little_endian", True)
        source.expect(known, "little-endian numbers", "others")
        self.begin = file.tell()
        # The storages come after the pickle, so it is first read without their contents.
        self.sizes: dict[str, int] = {}
        source.unpickled(file, self)
        keys = source.unpickled(file)
        source.expect(isinstance(keys, list), "a list of the storages", type(keys).__name__)
        self.places: dict[str, tuple[int, int]] = {}
        for key in keys:
            count = struct.unpack("<q", self._read(8))[0]
            size = count * self.sizes.get(key, 1)
            source.expect(count >= 0, "a count of elements", str(count))
            self.places[key] = file.tell(), size
            end = file.seek(0, io.SEEK_END)
            source.expect(self.places[key][0] + size <= end, f"{size} bytes", "fewer")
            file.seek(self.places[key][0] + size)

    def _read(self, size: int) -> bytes:
        data: bytes = self.file.read(size)
        self.source.expect(len(data) == size, f"{size} bytes", str(len(data)))
        return data

    def note(self, key: Any, itemsize: int) -> None:
        """Records the element size of a storage."""
        self.sizes[key] = itemsize

    def pickled(self) -> Any:
        """The file, positioned at the object's pickle."""
        self.file.seek(self.begin)
        return self.file

    def memory(self, key: Any, size: int) -> Tensor:
        """The bytes of a storage."""
        self.source.expect(key in self.places, f"a storage '{key}'", "none")
        begin, found = self.places[key]
        self.source.expect(found == size, f"{size} bytes of storage '{key}'", str(found))
        made = lamella.empty(size, dtype=lamella.uint8)
        if size:
            here = self.file.tell()
            self.file.seek(begin)
            memoryview(made)[:] = self._read(size)
            self.file.seek(here)
        return made
