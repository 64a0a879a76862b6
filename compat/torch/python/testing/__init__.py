"""torch.testing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("testing")

# (rtol, atol) by dtype; other values, such as integers, must be equal.
_TOLERANCES = {
    lamella.float16: (1e-3, 1e-5),
    lamella.bfloat16: (1.6e-2, 1e-5),
    lamella.float32: (1.3e-6, 1e-5),
    lamella.float64: (1e-7, 1e-7),
    lamella.complex64: (1.3e-6, 1e-5),
    lamella.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    Accepts tensors, arrays, numbers, and nests of them. The default tolerances are those of the
    dtype, the larger of two; rtol and atol are given together or not at all.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: expected rtol and atol, or neither, got {rtol} and {atol}")
    checks = {"device": check_device, "dtype": check_dtype, "stride": check_stride}
    checks["layout"] = check_layout
    error = _difference(actual, expected, "", rtol, atol, equal_nan, checks)
    if error is not None:
        raise AssertionError(error if msg is None else msg(error) if callable(msg) else msg)


def _difference(
    actual: Any, expected: Any, at: str, rtol: Any, atol: Any, nan: bool, checks: dict[str, bool]
) -> str | None:
    """Describes the first difference; None if there is none."""
    where = f" at {at}" if at else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"expected the keys {list(expected)}{where}, got {list(actual)}"
        pairs = [(f"[{key!r}]", actual[key], expected[key]) for key in expected]
    elif (
        isinstance(actual, Sequence)
        and isinstance(expected, Sequence)
        and not isinstance(actual, (str, bytes))
    ):
        if len(actual) != len(expected):
            return f"expected a length of {len(expected)}{where}, got {len(actual)}"
        pairs = [(f"[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected))]
    elif actual is None or isinstance(actual, (str, bytes)):
        return None if actual == expected else f"expected {expected!r}{where}, got {actual!r}"
    else:
        return _tensor_difference(actual, expected, where, rtol, atol, nan, checks)
    for place, a, e in pairs:
        found = _difference(a, e, at + place, rtol, atol, nan, checks)
        if found is not None:
            return found
    return None


def _tensor_difference(
    actual: Any, expected: Any, where: str, rtol: Any, atol: Any, nan: bool, checks: dict[str, bool]
) -> str | None:
    if isinstance(actual, Tensor) != isinstance(expected, Tensor):
        kinds = f"{type(expected).__name__}{where}, got {type(actual).__name__}"
        return f"expected a value of type {kinds}"
    tensors = isinstance(actual, Tensor)
    if not tensors:
        actual, expected = (_tensor_of(value) for value in (actual, expected))
    a, e = actual.detach(), expected.detach()
    if tensors and checks["layout"] and a.layout != e.layout:
        return f"expected the layout {e.layout}{where}, got {a.layout}"
    if a.shape != e.shape:
        return f"expected a shape of {list(e.shape)}{where}, got {list(a.shape)}"
    if tensors and checks["device"] and a.device != e.device:
        return f"expected the device {e.device}{where}, got {a.device}"
    if tensors and checks["dtype"] and a.dtype != e.dtype:
        return f"expected the dtype {e.dtype}{where}, got {a.dtype}"
    if tensors and checks["stride"] and a.stride() != e.stride():
        return f"expected strides of {e.stride()}{where}, got {a.stride()}"
    if rtol is None:
        bounds = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in (a.dtype, e.dtype)]
        rtol, atol = max(bound[0] for bound in bounds), max(bound[1] for bound in bounds)
    if a.device != e.device:
        a, e = a.cpu(), e.cpu()
    common = lamella.promote_types(a.dtype, e.dtype)
    if "float8" in str(common):
        common = lamella.float32
    a, e = (t.to(common).to_dense() for t in (a, e))
    close = lamella.isclose(a, e, rtol=rtol, atol=atol, equal_nan=nan)
    if bool(close.all().item()):
        return None
    wrong = ~close
    count = int(wrong.sum().item())
    if a.dim() == 0:
        return f"expected {e.item()}{where}, got {a.item()} (rtol={rtol}, atol={atol})"
    place = [int(i) for i in wrong.nonzero()[0].tolist()]
    first = f"the first at {place}: expected {e[tuple(place)].item()}, got {a[tuple(place)].item()}"
    return f"{count} of {a.numel()} elements differ{where}, {first} (rtol={rtol}, atol={atol})"


def default_tolerances(*inputs: Any, dtype_precisions: Any = None) -> tuple[float, float]:
    """The larger (rtol, atol) of the dtypes of tensors."""
    table = dtype_precisions or _TOLERANCES
    kinds = [x.dtype if isinstance(x, Tensor) else x for x in inputs]
    bounds = [table.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(b[0] for b in bounds), max(b[1] for b in bounds)


def _tensor_of(value: Any) -> Tensor:
    try:
        return lamella.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"assert_close: expected tensors, numbers or nests, got {type(value).__name__}"
        ) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """assert_close() that ignores dtypes and devices."""
    assert_close(
        lamella.as_tensor(actual),
        lamella.as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Random elements in [low, high), by default [-9, 9), limited to the dtype's range."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    sizes = list(sizes)
    if noncontiguous and sizes:
        sizes[-1] *= 2
    if dtype == lamella.bool:
        made = lamella.randint(0, 2, sizes, dtype=dtype)
    elif dtype.is_floating_point or dtype.is_complex:
        low, high = -9.0 if low is None else low, 9.0 if high is None else high
        real = dtype.to_real() if dtype.is_complex else dtype
        real = real if real == lamella.float64 else lamella.float32
        made = lamella.empty(sizes, dtype=real).uniform_(low, high)
        if dtype.is_complex:
            made = lamella.complex(made, lamella.empty(sizes, dtype=real).uniform_(low, high))
        made = made.to(dtype)
    else:
        limits = lamella.iinfo(dtype)
        least = max(-9 if low is None else int(low), limits.min)
        most = min(10 if high is None else int(high), limits.max + 1)
        made = lamella.randint(least, most, sizes, dtype=dtype)
    if exclude_zero:
        made[made == 0] = 1
    if noncontiguous and sizes:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    return made.to(device).requires_grad_(requires_grad)
