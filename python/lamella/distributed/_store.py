"""Stores: keys and values that processes share to set up a job, in memory, in a file, or by TCP."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

_TIMEOUT = timedelta(minutes=30)

# A change of a value, with two arguments: "set" to the first, "add" the first, "compare" with the
# first and set to the second if equal, "delete", or "look" (no change).
_Change = tuple[str, bytes, bytes]
_LOOK: _Change = ("look", b"", b"")


def _seconds(timeout: timedelta | float | None, otherwise: timedelta) -> float:
    chosen = otherwise if timeout is None else timeout
    return chosen.total_seconds() if isinstance(chosen, timedelta) else float(chosen)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """The base class of stores. All methods use _change(), which changes one value atomically."""

    timeout = _TIMEOUT

    def _change(self, key: str, change: _Change) -> bytes | None:
        raise NotImplementedError(f"{type(self).__name__}: expected the class to define _change()")

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the time limit of get() and wait()."""
        self.timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Sets a key."""
        self._change(key, ("set", _bytes(value), b""))

    def get(self, key: str) -> bytes:
        """Waits until a key is set, and returns its value; RuntimeError after the timeout."""
        self.wait([key])
        value = self._change(key, _LOOK)
        assert value is not None
        return value

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 if not set, and returns the sum."""
        return int(self._change(key, ("add", str(amount).encode(), b"")) or b"0")

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Sets a key if it has the expected value, where "" also means that it is not set; returns
        the value after this."""
        made = self._change(key, ("compare", _bytes(expected_value), _bytes(desired_value)))
        return _bytes(expected_value) if made is None else made

    def delete_key(self, key: str) -> bool:
        """Deletes a key; returns whether it was set."""
        there = self.check([key])
        self._change(key, ("delete", b"", b""))
        return there

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        return all(self._change(key, _LOOK) is not None for key in keys)

    def num_keys(self) -> int:
        """How many keys there are."""
        raise NotImplementedError(f"{type(self).__name__}: expected the class to define num_keys()")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are set; RuntimeError after the timeout."""
        seconds = _seconds(timeout, self.timeout)
        end, pause = time.monotonic() + seconds, 0.001
        while not self.check(keys):
            if time.monotonic() > end:
                missing = [key for key in keys if not self.check([key])]
                raise RuntimeError(
                    f"{type(self).__name__}: expected the keys {', '.join(missing)} within "
                    f"{seconds:g} s, but they were not set"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.05)


def _change_in(values: dict[str, bytes], key: str, change: _Change) -> bytes | None:
    """Changes a value and returns the new one; None if the key is then not set."""
    kind, first, second = change
    now = values.get(key)
    if kind == "set":
        now = first
    elif kind == "add":
        now = str(int(now or b"0") + int(first)).encode()
    elif kind == "compare":
        now = second if (now or b"") == first else now
    elif kind == "delete":
        now = None
    if now is None:
        values.pop(key, None)
    else:
        values[key] = now
    return now


class HashStore(Store):
    """A store in memory, for the threads of one process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def _change(self, key: str, change: _Change) -> bytes | None:
        with self._lock:
            return _change_in(self._values, key, change)

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)


class FileStore(Store):
    """A store in a file that all processes can access. world_size is ignored."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = os.fspath(file_name)
        self._locked(len)  # raises if the file cannot be written

    def _locked(self, work: Callable[[dict[str, bytes]], Any]) -> Any:
        import fcntl

        with open(self.path, "a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            before = file.read() or "{}"
            values = {key: value.encode("latin-1") for key, value in json.loads(before).items()}
            result = work(values)
            after = json.dumps({key: value.decode("latin-1") for key, value in values.items()})
            if after != before:
                file.truncate(0)
                file.write(after)
            return result

    def _change(self, key: str, change: _Change) -> bytes | None:
        return self._locked(lambda values: _change_in(values, key, change))

    def num_keys(self) -> int:
        """How many keys there are."""
        return self._locked(len)


class _Answers(socketserver.StreamRequestHandler):
    """Serves the requests of a TCPStore: one line of JSON for each request and each answer."""

    def handle(self) -> None:
        store: HashStore = self.server.store  # type: ignore[attr-defined]
        for line in self.rfile:
            key, kind, first, second = json.loads(line)
            if kind == "count":
                answer: Any = store.num_keys()
            else:
                value = store._change(
                    key, (kind, first.encode("latin-1"), second.encode("latin-1"))
                )
                answer = None if value is None else value.decode("latin-1")
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class TCPStore(Store):
    """A store in one process, the master, that others connect to by its host and port.

    port: 0 lets the master choose one, which the attribute `port` has. Others retry to connect
    until the timeout. wait_for_workers: the master waits until world_size processes, including
    itself, are connected.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self.timeout = timeout
        self.host, self.port = host_name, port
        self._server: _Server | None = None
        if is_master:
            self._server = _Server(("", port), _Answers)
            self._server.store = HashStore()  # type: ignore[attr-defined]
            self.port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._lock = threading.Lock()
        self._stream = self._reach("localhost" if is_master else host_name)
        self.add("lamella/processes", 1)
        if world_size is not None and wait_for_workers and is_master:
            end = time.monotonic() + _seconds(timeout, timeout)
            while (count := self.add("lamella/processes", 0)) < world_size:
                if time.monotonic() > end:
                    raise RuntimeError(
                        f"TCPStore: expected {world_size} processes within "
                        f"{_seconds(timeout, timeout):g} s, got {count}"
                    )
                time.sleep(0.01)

    def _reach(self, host: str) -> Any:
        seconds = _seconds(self.timeout, self.timeout)
        end = time.monotonic() + seconds
        while True:
            try:
                connection = socket.create_connection((host, self.port), timeout=5)
            except OSError as error:
                if time.monotonic() > end:
                    raise RuntimeError(
                        f"TCPStore: expected a master at {host}:{self.port} within {seconds:g} s: "
                        f"{error}"
                    ) from error
                time.sleep(0.05)
            else:
                connection.settimeout(None)
                return connection.makefile("rwb")

    def _ask(self, key: str, change: _Change) -> Any:
        kind, first, second = change
        request = [key, kind, first.decode("latin-1"), second.decode("latin-1")]
        with self._lock:
            self._stream.write(json.dumps(request).encode() + b"\n")
            self._stream.flush()
            line = self._stream.readline()
        if not line:
            raise RuntimeError(f"TCPStore: the master at {self.host}:{self.port} has ended")
        return json.loads(line)

    def _change(self, key: str, change: _Change) -> bytes | None:
        value = self._ask(key, change)
        return None if value is None else value.encode("latin-1")

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._ask("", ("count", b"", b"")))


class PrefixStore(Store):
    """A view of another store that adds a prefix to all keys."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store, self.timeout = prefix, store, store.timeout

    def _change(self, key: str, change: _Change) -> bytes | None:
        return self.underlying_store._change(f"{self.prefix}/{key}", change)

    def num_keys(self) -> int:
        """The number of all keys of the underlying store."""
        return self.underlying_store.num_keys()
