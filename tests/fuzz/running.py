"""One call of the fuzzer: its arguments, and its outcome."""

from __future__ import annotations

import ctypes
import gc
import math
import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

import operands
from calls import Other, Valid
from hostile import Loop, Spoiler
from operands import DTYPES, Operand, extent, make_lamella

import lamella
from lamella import _C
from lamella.testing._inputs import arguments_of
from lamella.testing._operator import Operator

# Warnings about writes to expanded tensors say nothing new here.
warnings.simplefilter("ignore")

# Blocks around which something was written, when the last call was over.
_damaged = [0]
# What a call may raise; its text begins with the name of an operator.
KINDS = (
    RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError,
    MemoryError, RecursionError, BufferError,
)  # fmt: skip
_NAMED = re.compile(
    r"^(aten::|Tensor\.)?([a-zA-Z_0-9]+)(\.[a-zA-Z_]+)?(: | \(| \w+: the derivative for )"
)
# An operator that refuses a dtype, a device or an expanded tensor is named as it was called.
_OF_DTYPES_OR_DEVICES = re.compile(
    r", got .*(bool|u?int\d+|b?float\d\w*|complex\d+|cpu|meta)$|; clone it first$"
)
# Arguments that are written though their schemas, which are PyTorch's, do not say so.
_WRITTEN_UNSAID = {
    "_copy_from": ("dst",),
    "batch_norm": ("running_mean", "running_var"),
    "native_batch_norm": ("running_mean", "running_var"),
    "instance_norm": ("running_mean", "running_var"),
}
_SEVERAL_LINES = re.compile(r"\s+")


def operators(match: str = "") -> list[Operator]:
    """All operators, or those whose names contain a match of the pattern."""
    names = sorted(_C._operator_names())
    found = [Operator(*name) for name in names if name[0].startswith("aten::")]
    return [op for op in found if re.search(match, op.full_name)]


# What becomes of all tensors of a valid call, in turn, in a sweep.
_TURNS = (*DTYPES, *["mix"] * 4, *["unplace"] * 4, *["extreme"] * 6)


class Call:
    """The arguments of call `index`. valid: they are not spoilt; twice: the result is checked to
    depend on nothing that memory held before."""

    def __init__(
        self, op: Operator, seed: int, index: int, only_valid: bool = False, sweep: bool = False
    ) -> None:
        self.op = op
        self.name = f"{op.full_name}:{seed}:{index}"
        rng = random.Random(self.name)
        lot = 0.0 if only_valid or sweep else rng.random()
        self.values = Valid(op, rng, only_valid).draw()
        self.valid = lot < 0.35 and not sweep
        self.twice = sweep or index % 4 == 0
        spoiler = Spoiler(op, rng, self.values)
        if sweep or 0.75 <= lot < 0.85:
            self._turn(spoiler, _TURNS[index % len(_TURNS)] if sweep else rng.choice(_TURNS))
            lot = 0.0
        if lot >= 0.95:
            spoiler.replace_all()
        elif lot >= 0.85:
            spoiler.spoil(3)
        elif lot >= 0.35:
            spoiler.spoil(rng.choice((1, 1, 2)))
        self.giant = spoiler.giant
        self.loops = any(isinstance(value, Loop) for value in self.values.values())

    def _turn(self, spoiler: Spoiler, turn: str) -> None:
        if turn in DTYPES:
            spoiler.recast(turn)
        else:
            getattr(spoiler, turn)()
        self.twice = turn != "unplace"

    def __str__(self) -> str:
        parts = [f"{name}={_text(value)}" for name, value in self.values.items()]
        return f"{self.op.full_name}({', '.join(parts)})"

    def operands(self) -> Iterator[tuple[str, Operand]]:
        for name, value in self.values.items():
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, Operand):
                    yield name, item

    def roots(self) -> dict[int, tuple[Operand, bool]]:
        """The operands that own memory, and whether the schema says that it is written."""
        written = {a.name for a in self.op.arguments if a.write}
        written.update(_WRITTEN_UNSAID.get(self.op.short_name, ()))
        found: dict[int, tuple[Operand, bool]] = {}
        for name, operand in self.operands():
            if operand.device == "cpu":
                root = operand.root()
                before = found.get(id(root), (root, False))[1]
                found[id(root)] = (root, before or name in written)
        return found

    def made(self, make: Any, other: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for a call, tensors and other objects made by these functions."""
        maker = _Maker(self, make, other)
        by_name = {a.name: a for a in self.op.arguments}
        values = {name: maker.build(value, by_name[name]) for name, value in self.values.items()}
        return arguments_of(self.op, values)

    def release(self) -> None:
        for _, operand in self.operands():
            root = operand.root()
            if root.memory is not None:
                root.memory.live = None


class _Maker:
    """Makes the objects of one call, each operand's tensor once."""

    def __init__(self, call: Call, make: Any, other: Any) -> None:
        self.call, self.make, self.other = call, make, other
        self.tensors: dict[int, Any] = {}

    def tensor(self, operand: Operand) -> Any:
        if id(operand) not in self.tensors:
            rng = random.Random(operand.root().seed)
            self.tensors[id(operand)] = self.make(operand, rng)
        return self.tensors[id(operand)]

    def build(self, value: Any, argument: Any) -> Any:
        if isinstance(value, Operand):
            return self.tensor(value)
        if isinstance(value, Other):
            return self.other(value)
        if isinstance(value, Loop):
            first = next((o for _, o in self.call.operands()), None)
            return value.make(self.tensor(first) if argument.is_tensor and first else 1)
        if isinstance(value, list):
            return [self.build(item, argument) for item in value]
        return value


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "..."


def other_lamella(value: Other) -> Any:
    if value.kind == "generator":
        return lamella.Generator(device=value.name) if value.name != "cpu" else lamella.Generator()
    return getattr(lamella, value.name)


def tensors_in(value: Any, depth: int = 0) -> Iterator[lamella.Tensor]:
    if isinstance(value, lamella.Tensor):
        yield value
    elif isinstance(value, (list, tuple)) and depth < 3:
        for item in value:
            yield from tensors_in(item, depth + 1)


def outside(tensor: lamella.Tensor) -> str | None:
    """The problem if a tensor's elements are outside of its storage."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    if any(size < 0 for size in shape):
        return f"has the shape {shape}"
    if tensor.numel() != math.prod(shape):
        return f"of shape {shape} has {tensor.numel()} elements"
    if tensor.device.type != "cpu" or tensor.layout != lamella.strided:
        return None
    if tensor.numel() == 0:
        return None
    size = tensor.element_size()
    last = (tensor.storage_offset() + extent(shape, strides)) * size
    have = _C._storage_bytes(tensor).numel()
    if min([tensor.storage_offset(), *strides]) < 0 or last > have:
        where = f"strides {strides} offset {tensor.storage_offset()}"
        return f"{tensor.dtype}{shape} {where} is outside of its {have} bytes"
    return None


class Outcome:
    """The outcome of a call. kind: "fine", "error", or a failure, which `text` explains."""

    def __init__(self, kind: str, text: str = "", result: Any = None) -> None:
        self.kind = kind
        self.text = _SEVERAL_LINES.sub(" ", text)[:400]
        self.result = result
        self.digest = b""


# Their results have the elements that memory has.
_UNWRITTEN = re.compile("^(new_)?empty|^resize|^_resize|^set_|^_efficientzerotensor")


def run(call: Call, around: Any = None, keep: bool = False) -> Outcome:
    """Makes the call. around(function, args, kwargs) makes it in a layer."""
    outcome = _run(call, around, keep)
    if not (call.twice and outcome.kind == "fine" and outcome.digest) or call.giant:
        return outcome
    if _UNWRITTEN.match(call.op.short_name):
        return outcome
    operands.fill[0] = operands.OTHER_FILL
    again = _run(call, around, False)
    operands.fill[0] = operands.FILL
    if again.kind == "fine" and again.digest != outcome.digest:
        return Outcome("unwritten", "the result has elements that depend on what memory held")
    return outcome if again.kind in ("fine", "unmade") else again


def _digest(values: Any) -> bytes:
    """All elements of these tensors on the CPU."""
    parts = []
    for tensor in tensors_in(values):
        if tensor.device.type == "cpu" and tensor.layout == lamella.strided:
            if not 0 < tensor.numel() < 10**6:
                continue
            copy = tensor.detach()
            if copy.is_conj() or copy.is_neg():
                continue  # a view of what another one holds
            copy = copy.contiguous()
            parts.append(ctypes.string_at(copy.data_ptr(), copy.numel() * copy.element_size()))
    return b"|".join(parts)


def _run(call: Call, around: Any, keep: bool) -> Outcome:
    try:
        args, kwargs = call.made(make_lamella, other_lamella)
    except (RuntimeError, ValueError, MemoryError, TypeError, OverflowError) as error:
        # A description that is none of a tensor, such as an alias that does not fit.
        call.release()
        return Outcome("unmade", str(error))
    roots = call.roots()
    places = {key: root.memory.live.data_ptr() for key, (root, _) in roots.items()}
    lamella.manual_seed(0)
    outcome = Outcome("fine")
    try:
        result = call.op.call(*args, **kwargs) if around is None else around(call, args, kwargs)
    except Exception as error:
        outcome = _judge(error, call.op)
        if around is not None and outcome.kind == "foreign name":
            outcome.kind = "error"  # that of a layer, or of a call that the layer makes
    else:
        for tensor in tensors_in(result):
            wrong = outside(tensor)
            if wrong is not None:
                outcome = Outcome("result outside", f"the result {wrong}")
        outcome.result = (result, args, kwargs) if keep else None
        if call.twice and not call.giant and outcome.kind == "fine":
            outcome.digest = _digest([result, args, *kwargs.values()])
        del result
    for tensor in tensors_in([args, *kwargs.values()]):
        wrong = outside(tensor)
        if wrong is not None:
            outcome = Outcome("result outside", f"an argument {wrong}")
    for key, (root, written) in roots.items():
        live, contents = root.memory.live, root.memory.contents
        if written or not contents:
            continue
        if live.data_ptr() != places[key] or _C._storage_bytes(live).numel() != len(contents):
            outcome = Outcome("input changed", f"{root} has other memory")
        elif ctypes.string_at(places[key], len(contents)) != contents:
            outcome = Outcome("input changed", f"{root} was written ({outcome.text})")
    damaged = _C._guarded_memory()[2]
    if damaged != _damaged[0]:
        _damaged[0] = damaged
        outcome = Outcome("written beside", "bytes beside a tensor's memory were written")
    call.release()
    return outcome


def _judge(error: Exception, op: Operator) -> Outcome:
    text = str(error)
    shown = f"{type(error).__name__}: {text}"
    if isinstance(error, SystemError) or not isinstance(error, KINDS):
        return Outcome("bad exception", shown)
    if "INTERNAL ASSERT" in text.upper() or "please report" in text.lower():
        return Outcome("internal error", shown)
    if isinstance(error, RecursionError):
        return Outcome("error", shown)
    if not text:
        return Outcome("bad exception", shown)
    if isinstance(error, MemoryError) and "allocate" in text:
        return Outcome("error", shown)
    named = _NAMED.match(text)
    if named and (isinstance(error, NotImplementedError) or _OF_DTYPES_OR_DEVICES.search(text)):
        name, own = named.group(2).strip("_"), op.short_name.strip("_")
        if not own.startswith(name) and not own.endswith(name):  # batch_norm of native_batch_norm
            return Outcome("foreign name", shown)
    return Outcome("error" if named else "unnamed error", shown)


# ---- Leaks ---------------------------------------------------------------------------------------


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]  # fmt: skip


def _in_use() -> tuple[int, int]:
    """Bytes of the C heap, and guarded blocks."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallInfo
    info = mallinfo()
    return info.uordblks + info.hblkhd, _C._guarded_memory()[0]


def leak(
    op: Operator, seed: int, index: int, around: Any, sweep: bool, times: int = 40
) -> str | None:
    """The memory that grows when a call is repeated."""

    def again() -> None:
        run(Call(op, seed, index, sweep=sweep), around)

    for _ in range(12):
        again()
    heap, blocks = _in_use()
    for _ in range(7):  # a pool that grows now and then is no leak
        for _ in range(times):
            again()
        now_heap, now_blocks = _in_use()
        more_heap, more_blocks = now_heap - heap, now_blocks - blocks
        if more_blocks < times // 2 and more_heap < times * 16:
            return None
        heap, blocks = now_heap, now_blocks
    return f"{more_blocks} blocks of tensors and {more_heap} bytes are left of {times} calls"
