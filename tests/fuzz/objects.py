"""Throws objects that lie at every public function and method, in child processes.

    python tests/fuzz/objects.py --calls 60                   everything, a new seed, printed
    python tests/fuzz/objects.py --match 'Tensor\\.|stack'     names in which the pattern is found
    python tests/fuzz/objects.py --replay 'tensor:7:12'       one call, and what comes of it

Objects lie about their length, number or memory, raise where nobody expects it, change while they
are read, or contain themselves. Call `index` of a function under a seed is the same always. A
function fails if its process ends by a signal, if a call takes more than 30 seconds, or if it
raises SystemError, which is how Python says that C code broke its rules.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import io
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy

import lamella
import lamella.nn.functional
from lamella.utils import _pytree

HANG = 30  # seconds; a busy machine is no hang
MEMORY = 1 << 30
_STATE = struct.Struct("=iid")
# What waits, ends the process, changes it for all later calls, or runs what it is given.
LEFT_OUT = re.compile(
    r"set_num_threads|set_num_interop|load_library|unload|_Exit|breakpoint|compile|set_default|"
    r"set_printoptions|manual_seed|seed|_C\.|register|deterministic|set_warn|initial_seed|"
    r"use_.*algorithms|opcheck|gradcheck|install|backend_check|inference_mode|set_rng|"
    r"set_grad_enabled|fork_rng|define|save|Library|custom_op|triton_op|\.impl|fallback"
)


def spaces() -> Iterator[tuple[str, Any]]:
    yield "lamella", lamella
    for name in ("nn.functional", "nn.init", "linalg", "fft", "special", "func", "autograd", "amp"):
        module: Any = lamella
        for part in name.split("."):
            module = getattr(module, part)
        yield name, module
    yield "pytree", _pytree
    yield "Tensor", lamella.Tensor


def functions() -> dict[str, Callable[..., Any]]:
    found = {}
    for space, module in spaces():
        for name in sorted(dir(module)):
            if name.startswith("_") and not (
                module is lamella.Tensor
                and name.strip("_")
                in "getitem setitem contains array dlpack reduce_ex deepcopy "
                "format index add radd pow rpow matmul eq lt and lshift floordiv iadd".split()
            ):
                continue
            with contextlib.suppress(AttributeError):
                function = getattr(module, name)
                full = name if space == "lamella" else f"{space}.{name}"
                plain = callable(function) and not isinstance(function, types.ModuleType)
                if plain and not LEFT_OUT.search(full):
                    found[full] = function
    return found


# ---- Objects -------------------------------------------------------------------------------------


class Liar:
    """Answers each of these questions with `answer`, called if it can be, or by raising it."""

    def __init__(self, names: str, answer: Any) -> None:
        self.names, self.answer = names, answer

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.names!r}, {type(self.answer).__name__})"


QUESTIONS = {
    "index": ("__index__",),
    "float": ("__float__",),
    "complex": ("__complex__",),
    "bool": ("__bool__",),
    "len": ("__len__",),
    "sequence": ("__len__", "__getitem__"),
    "iter": ("__iter__",),
    "array": ("__array__",),
    "interface": ("__array_interface__",),
    "cuda": ("__cuda_array_interface__",),
    "dlpack": ("__dlpack__", "__dlpack_device__"),
    "any": ("__getattr__",),
    "eq": ("__eq__", "__hash__"),
    "str": ("__str__", "__repr__"),
    "fspath": ("__fspath__",),
    "call": ("__call__",),
    "dtype": ("dtype", "shape", "ndim", "strides"),
    "function": ("__torch_function__", "__torch_dispatch__"),
}
ANSWERS: tuple[Any, ...] = (
    0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 1.5, float("nan"), "text", None, (), [],
    {"data": (1, False), "shape": (3,), "typestr": "<f4", "version": 3}, KeyError("lie"),
    TypeError(), ValueError("lie"), ZeroDivisionError(), AttributeError("lie"), OverflowError(),
    StopIteration(), RecursionError(), MemoryError(), BufferError(),
)  # fmt: skip


def liar(rng: random.Random) -> Any:
    question = rng.choice(sorted(QUESTIONS))
    answer = rng.choice(ANSWERS)
    left = 50  # a sequence ends at some time

    def method(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if isinstance(answer, BaseException):
            raise answer
        if left < 0:
            raise IndexError("the end")
        return answer

    base = rng.choice((Liar, Liar, int, float, str, list, tuple, dict, numpy.ndarray))
    if base is numpy.ndarray and question in ("str", "eq"):
        base = Liar
    # A class may bear any name.
    name = rng.choice(("Liar", "numpy.float64", "numpy.bool_", "numpy.ndarray", "lamella.Tensor"))
    body: dict[str, Any] = dict.fromkeys(QUESTIONS[question], method)
    if question in ("interface", "cuda", "dtype"):
        body = dict.fromkeys(QUESTIONS[question], property(method))
    if base is not Liar:
        body.setdefault("__repr__", lambda self: f"a {base.__name__} that lies")
    made = type(name, (base,), body)
    if base is Liar:
        return made(question, answer)
    return made((2,)) if base is numpy.ndarray else made()


class Changes(list):  # type: ignore[type-arg]
    """A list that loses or gains items when one of its items is read as a number."""

    def __init__(self, rng: random.Random) -> None:
        items: list[Any] = [1, 2, lamella.ones(2), 3]
        super().__init__(items[: rng.randrange(5)])
        change = rng.choice((self.clear, lambda: self.extend([1] * 100), lambda: self.append(self)))

        class Item:
            def __index__(self) -> int:
                change()
                return 1

            def __float__(self) -> float:
                change()
                return 1.0

        self.insert(rng.randrange(len(self) + 1), Item())


def endless(rng: random.Random) -> Any:
    kind = rng.randrange(5)
    made: Any = {} if kind == 3 else []
    if kind == 0:
        made.append(made)
    elif kind == 1:
        made += [lamella.ones(1), (made, made)]
    elif kind == 2:
        for _ in range(20_000):
            made = [made]
    elif kind == 3:
        made["a"] = made
    else:
        made.append((made, [made], {"k": made}))
    return made


class Sub(lamella.Tensor):
    pass


class Serves(lamella.Tensor):
    answer: Any = None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(cls.answer, BaseException):
            raise cls.answer
        return cls.answer


def tensor(rng: random.Random) -> Any:
    kind = rng.randrange(10)
    x = lamella.ones(rng.choice(((), (0,), (1,), (3,), (2, 2), (2, 3, 4), (1, 2, 5, 5))))
    if kind == 0:
        return x.to("meta")
    if kind == 1:
        return x.requires_grad_()
    if kind == 2:
        return (x + 1j).conj()
    if kind == 3:
        return (x + 1j).conj().imag
    if kind == 4:
        return Sub(x)
    if kind == 5:
        return lamella.Tensor._make_subclass(
            type("Serves", (Serves,), {"answer": rng.choice((*ANSWERS, NotImplemented, x))}), x
        )
    if kind == 6:
        return x.to(rng.choice((lamella.int64, lamella.bool, lamella.uint8, lamella.bfloat16)))
    return x


def array(rng: random.Random) -> Any:
    kind = rng.randrange(9)
    x = numpy.arange(6.0).reshape(2, 3)
    if kind == 0:
        x.flags.writeable = False
    elif kind == 1:
        x = x[::-1]
    elif kind == 2:
        x = x.astype(rng.choice((">f8", "O", "S0", "U3", "f2", "F", "g", "i1", "?", "u8")))
    elif kind == 3:
        x = numpy.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
    elif kind == 4:
        x = numpy.array(rng.choice((1, 2.5, True, "x", None)))
    elif kind == 5:
        x = numpy.frombuffer(bytearray(17), dtype=numpy.int32, count=4, offset=1)
    elif kind == 6:
        x = numpy.lib.stride_tricks.as_strided(x, (4, 4), rng.choice(((0, 8), (1, 8), (8, 0))))
    elif kind == 7:
        return rng.choice((numpy.float64, numpy.int16, numpy.complex64, numpy.longdouble))(1)
    return x


def memory(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind == 0:
        return bytearray(rng.randrange(20))
    if kind == 1:
        view = memoryview(bytearray(8))
        view.release()
        return view
    if kind == 2:
        return memoryview(bytearray(24)).cast("d", (3, 1))
    if kind == 3:
        return b"\0\1\2"
    if kind == 4:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(1, rng.choice((b"used_dltensor", b"x", None)), None)
    return lamella.ones(2).__dlpack__()


PLAIN: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 2**63 - 1, 2**63, -(2**63), 10**40, 0.5, float("nan"), 1j, "",
    "mean", "\udc80", "cpu", "cuda:99", b"", (), [], {}, ..., slice(None), slice(1, 2**70, None),
    range(3), NotImplemented, object(), int, float, Ellipsis, lamella.float32, lamella.int64,
    lamella.strided, lamella.channels_last, lamella.Generator(), lamella.Size([1, 2]), lamella,
    lamella.device("meta"), lamella.add, lamella.Tensor, len, print, lambda *a, **k: None,
    lambda *a, **k: a[0], lambda *a, **k: 1 / 0, io.BytesIO(b"x"), [1, 2], (0, 1), [1.5], ["a"],
    [None], [lamella.ones(2)], [lamella.ones(2), lamella.ones(2)], {"a": lamella.ones(1)}, {1: 2},
)  # fmt: skip


def hostile(rng: random.Random) -> Any:
    makers = (liar, liar, liar, Changes, endless, tensor, tensor, array, array, memory)
    return rng.choice(makers)(rng) if rng.random() < 0.75 else rng.choice(PLAIN)


KEYWORDS = ("dim", "dtype", "device", "out", "keepdim", "memory_format", "size", "generator",
            "requires_grad", "input", "other", "copy", "\udc80", "reduction", "self")  # fmt: skip


def arguments(name: str, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    args = [hostile(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
    if args and rng.random() < 0.6:
        args[0] = lamella.ones(2, 3)
    if name.startswith("Tensor."):
        args.insert(0, tensor(rng) if rng.random() < 0.5 else lamella.ones(2, 3))
    keywords = rng.sample(KEYWORDS, rng.choice((0, 0, 0, 1, 2)))
    return args, {keyword: hostile(rng) for keyword in keywords}


# ---- Calls ---------------------------------------------------------------------------------------


def call(name: str, function: Any, seed: int, index: int) -> str | None:
    """The failure of a call, or None."""
    rng = random.Random(f"{name}:{seed}:{index}")
    args, kwargs = arguments(name, rng)
    try:
        result = function(*args, **kwargs)
        if isinstance(result, lamella.Tensor) and result.numel() < 10_000:
            repr(result)
    except SystemError as error:
        # Python's own, of memory that was released.
        return None if str(error).startswith("<class 'enumerate'>") else f"SystemError: {error}"
    except BaseException as error:
        str_of = type(error).__name__
        return "KeyboardInterrupt" if str_of == "KeyboardInterrupt" else None
    return None


class Child:
    """Runs functions from `first` on, and writes down where it is."""

    def __init__(self, names: list[str], options: argparse.Namespace, log: Path) -> None:
        self.names, self.options, self.log = names, options, log
        self.state = mmap.mmap(-1, 4096)

    def at(self) -> tuple[int, int, float]:
        return _STATE.unpack_from(self.state)

    def start(self, first: int, index: int) -> int:
        _STATE.pack_into(self.state, 0, first, index, time.monotonic() + 60)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                self.work(first, index)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        return pid

    def work(self, first: int, index: int) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
        os.chdir(tempfile.gettempdir())
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        lamella.set_num_threads(1)
        warnings.simplefilter("ignore")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        found = functions()
        for at in range(first, len(self.names)):
            name = self.names[at]
            for i in range(index if at == first else 0, self.options.calls):
                _STATE.pack_into(self.state, 0, at, i, time.monotonic() + HANG)
                wrong = call(name, found[name], self.options.seed, i)
                if wrong is not None:
                    with open(self.log, "a") as log:
                        log.write(f"{name}:{self.options.seed}:{i}  {wrong}\n")


def run(options: argparse.Namespace) -> int:
    names = [name for name in functions() if re.search(options.match, name)]
    folder = Path(tempfile.mkdtemp(prefix="lamella-objects-"))
    log = folder / "findings"
    log.touch()
    begin = time.monotonic()
    child = Child(names, options, log)
    at, index = 0, 0
    deaths: collections.Counter[int] = collections.Counter()
    while at < len(names):
        pid = child.start(at, index)
        ended = None
        while ended is None:
            time.sleep(0.05)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done != 0:
                ended = status
            # The child may be writing what is read here, so one look proves nothing.
            elif all(time.sleep(0.05) or time.monotonic() > child.at()[2] for _ in range(3)):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                ended = -1
        if ended == 0:
            break
        at, index, _ = child.at()
        if ended == -1:
            how = f"took more than {HANG} s"
        elif os.WIFSIGNALED(ended):
            how = signal.Signals(os.WTERMSIG(ended)).name
        else:
            how = f"exit {os.WEXITSTATUS(ended)}"
        with open(log, "a") as file:
            file.write(f"{names[at]}:{options.seed}:{index}  {how}\n")
        deaths[at] += 1
        index += 1
        if deaths[at] >= 5 or index >= options.calls:
            at, index = at + 1, 0
    findings = log.read_text().splitlines()
    for line in findings:
        print(line)
    print(
        f"{len(names)} functions, {options.calls} calls each, seed {options.seed}, "
        f"{time.monotonic() - begin:.0f} s: {len(findings)} findings"
    )
    return 1 if findings else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--match", default="")
    parser.add_argument("--replay", metavar="NAME:SEED:INDEX")
    options = parser.parse_args()
    if options.replay is None:
        return run(options)
    name, seed, index = options.replay.rsplit(":", 2)
    rng = random.Random(f"{name}:{seed}:{index}")
    args, kwargs = arguments(name, rng)
    print(name, [type(a).__mro__[:2] for a in args], list(kwargs), flush=True)
    print(functions()[name](*args, **kwargs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
