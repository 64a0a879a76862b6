"""Valid calls beside PyTorch's operator of the same name: values, dtypes, shapes, refusals."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from calls import Other
from operands import make_lamella, make_torch
from running import Call, Outcome, _judge, other_lamella

import lamella

torch.set_num_threads(1)
warnings.simplefilter("ignore")

# Relative and absolute, by dtype. Sums are taken in other orders.
_TOLERANCES = {
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-7, 1e-8),
    torch.complex64: (1e-4, 1e-5),
    torch.complex128: (1e-7, 1e-8),
}
# A dtype that is returned is a number in PyTorch's operators.
_CODES = {
    name: code
    for code, name in enumerate(
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 "
        "bool qint8 quint8 qint32 bfloat16".split()
    )
}
# Operators whose results are not determined: uninitialized memory, or one of several right answers.
_NO_VALUES = ("empty", "new_empty", "resize", "lstsq", "eig", "svd", "qr", "linalg_eigh", "_linalg")


def _other_torch(value: Other) -> Any:
    if value.kind == "generator":
        return torch.Generator(device=value.name)
    return getattr(torch, value.name)


def _torch_operator(op: Any) -> Any:
    packet = getattr(torch.ops.aten, op.short_name, None)
    return getattr(packet, op.overload or "default", None) if packet is not None else None


def compare(call: Call, entering: Callable[[], None] = lambda: None) -> Outcome:
    """ "difference" where the two do not agree; "absent" where PyTorch has no such operator.

    entering() is called before PyTorch is.
    """
    op = call.op
    theirs = _torch_operator(op)
    if theirs is None:
        return Outcome("absent")
    mine, error = _run(call, op.call, make_lamella, other_lamella)
    if isinstance(mine, Outcome):
        return mine
    entering()
    expected, refusal = _run(call, theirs, make_torch, _other_torch)
    if isinstance(expected, Outcome):
        return expected
    if error is not None and refusal is None:
        return Outcome("difference", f"refuses: {_judge(error, call.op).text}")
    if error is None and refusal is not None:
        text = str(refusal)
        if isinstance(refusal, NotImplementedError) or "not implemented for" in text:
            return Outcome("fine", "PyTorch has no kernel")
        return Outcome("difference", f"accepts: {type(refusal).__name__}: {text}")
    if error is not None:
        return Outcome("error", _judge(error, call.op).text)
    # Strides are promised of views and of what is computed element by element.
    strides = not op.outs and (
        "pointwise" in op.tags or any(r.before and not r.write for r in op.returns)
    )
    values = not any(op.short_name.startswith(name) for name in _NO_VALUES)
    # What is computed in the dtype of an argument is no more precise than that, whatever `out` is.
    least = max((_TOLERANCES[t] for t in _dtypes(call)), default=(0.0, 0.0))
    wanted = _Wanted(values, strides, least)
    found = _difference(mine, expected, wanted)
    return Outcome("difference", found) if found else Outcome("fine")


@dataclasses.dataclass
class _Wanted:
    """The properties that must agree besides dtypes and shapes, and the tolerance of values."""

    values: bool
    strides: bool
    least: tuple[float, float]


def _dtypes(call: Call) -> Iterator[torch.dtype]:
    for _, operand in call.operands():
        dtype = getattr(torch, operand.dtype)
        if dtype in _TOLERANCES:
            yield dtype


def _run(call: Call, function: Any, make: Any, other: Any) -> tuple[Any, Exception | None]:
    """Copies of the results and of the written arguments; or the exception."""
    try:
        args, kwargs = call.made(make, other)
    except (RuntimeError, ValueError, MemoryError, TypeError, OverflowError) as error:
        call.release()
        return Outcome("unmade", str(error)), None
    (lamella if make is make_lamella else torch).manual_seed(0)
    try:
        result = function(*args, **kwargs)
        written = [value for argument, value in zip(call.op.arguments, args) if argument.write]
        written += [kwargs[a.name] for a in call.op.arguments if a.write and a.name in kwargs]
        return _copied([result, written], make is make_lamella), None
    except Exception as error:
        return None, error
    finally:
        call.release()


def _copied(value: Any, ours: bool) -> Any:
    """Tensors as (tensor of PyTorch's with own memory, strides)."""
    if isinstance(value, (list, tuple)):
        return [_copied(item, ours) for item in value]
    if ours and isinstance(value, lamella.Tensor):
        strides = list(value.stride())
        if value.device.type == "meta":
            shape = list(value.shape)
            dtype = getattr(torch, str(value.dtype).rpartition(".")[2])
            return torch.empty_strided(shape, strides, dtype=dtype, device="meta"), strides
        plain = value.detach().resolve_conj().resolve_neg()
        if value.dtype in (lamella.bool,):
            return torch.from_dlpack(plain.clone().view(lamella.uint8)).ne(0), strides
        return torch.from_dlpack(plain.clone()), strides
    if isinstance(value, torch.Tensor):
        strides = list(value.stride())
        if value.device.type == "meta":
            return value, strides
        return value.detach().resolve_conj().resolve_neg().clone(), strides
    if isinstance(value, lamella.dtype):
        return _CODES[str(value).rpartition(".")[2]]
    return value


def _difference(mine: Any, theirs: Any, wanted: _Wanted) -> str | None:
    if isinstance(theirs, list):
        if not isinstance(mine, list) or len(mine) != len(theirs):
            return f"values: {str(mine)[:80]} instead of {str(theirs)[:80]}"
        pairs = zip(mine, theirs)
        return next((d for d in (_difference(*p, wanted) for p in pairs) if d), None)
    if isinstance(theirs, tuple):
        if not isinstance(mine, tuple):
            return f"values: {mine!r} instead of a tensor"
        return _tensor_difference(*mine, *theirs, wanted)
    same = mine == theirs or (mine != mine and theirs != theirs)
    if not same and isinstance(theirs, (float, complex)) and isinstance(mine, (float, complex)):
        same = abs(mine - theirs) <= 1e-5 * max(1.0, abs(theirs))
    return None if same else f"values: {mine!r} instead of {theirs!r}"


def _tensor_difference(
    mine: torch.Tensor,
    strides: list[int],
    theirs: torch.Tensor,
    expected: list[int],
    wanted: _Wanted,
) -> str | None:
    if mine.dtype != theirs.dtype:
        return f"dtype: {mine.dtype} instead of {theirs.dtype}"
    if mine.shape != theirs.shape:
        return f"shape: {list(mine.shape)} instead of {list(theirs.shape)}"
    if mine.device.type != theirs.device.type:
        return f"device: {mine.device} instead of {theirs.device}"
    if mine.numel() == 0 or not wanted.values or mine.device.type == "meta":
        return None
    if mine.is_complex():
        # Whether a product with infinity is infinite or no number depends on the order of its sums.
        finite = mine.isfinite() & theirs.isfinite()
        if (mine.isfinite() != theirs.isfinite()).any():
            return f"values: {_shown(mine)} instead of {_shown(theirs)}"
        mine, theirs = mine.where(finite, 0), theirs.where(finite, 0)
    own = _TOLERANCES.get(mine.dtype)
    relative, absolute = max(own, wanted.least) if own is not None else (0.0, 0.0)
    if not torch.allclose(mine, theirs, rtol=relative, atol=absolute, equal_nan=True):
        return f"values: {_shown(mine)} instead of {_shown(theirs)}"
    steps = [(s, t) for n, s, t in zip(theirs.shape, strides, expected) if n > 1]
    if wanted.strides and any(s != t for s, t in steps):
        return f"strides: {strides} instead of {expected} of {list(theirs.shape)}"
    return None


def _shown(tensor: torch.Tensor) -> str:
    return str(tensor.flatten()[:6].tolist())
