"""Prints tensors the way PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Union

from lamella import _C, Tensor


class _Options:
    precision = 4
    threshold: float = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


_options = _Options()

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print.

    precision: digits after the decimal point; threshold: the number of elements above which tensors
    are abbreviated; edgeitems: the elements then shown at each end of a dimension; linewidth:
    characters in a line; profile: "default", "short" or "full"; sci_mode: whether floats print as
    1e+00, None to decide for each tensor.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: expected 'profile' to be default, short or full, "
                f"got {profile!r}"
            )
        for name, preset in _PROFILES[profile].items():
            setattr(_options, name, preset)
    given: dict[str, float | None] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options that set_printoptions() sets."""
    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    return {name: getattr(_options, name) for name in names}


class _Formatter:
    """Formats all numbers of a tensor with one width and in one notation."""

    def __init__(self, values: Sequence[float], floating: bool) -> None:
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        if not floating:
            for value in values:
                self.width = max(self.width, len(str(value)))
            return
        values = [value for value in values if value != 0 and math.isfinite(value)]
        if not values:
            return
        most = max(abs(value) for value in values)
        least = min(abs(value) for value in values)
        self.int_mode = all(value == math.ceil(value) for value in values)
        wide = most / least > 1000.0 or most > 1.0e8
        self.sci_mode = wide if self.int_mode else wide or least < 1.0e-4
        if _options.sci_mode is not None:
            self.sci_mode = _options.sci_mode
        self.width = max(self.width, *(len(self._number(value)) for value in values))

    def _number(self, value: float) -> str:
        if self.sci_mode:
            return f"{value:.{_options.precision}e}"
        if self.int_mode:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{_options.precision}f}"

    def format(self, value: float) -> str:
        text = self._number(value) if self.floating else str(value)
        return text.rjust(self.width)


class _ComplexFormatter:
    def __init__(self, values: Sequence[complex]) -> None:
        self.real = _Formatter([value.real for value in values], True)
        self.imag = _Formatter([value.imag for value in values], True)
        self.width = self.real.width + self.imag.width + 1

    def format(self, value: complex) -> str:
        imag = (self.imag.format(value.imag) + "j").lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return self.real.format(value.real) + sign + imag


_AnyFormatter = Union[_Formatter, _ComplexFormatter]


def _edges(tensor: Tensor) -> list[Any]:
    """The elements as nested lists, with an Ellipsis in place of a middle that is left out."""
    size = tensor.shape[0]
    edge = _options.edgeitems
    long = size > 2 * edge
    picked = [*range(edge), *range(size - edge, size)] if long else range(size)
    items = [tensor[i].item() if tensor.dim() == 1 else _edges(tensor[i]) for i in picked]
    if long:
        items.insert(edge, Ellipsis)
    return items


def _leaves(items: Any, dims: int) -> Iterator[Any]:
    if dims == 0:
        yield items
        return
    for item in items:
        if item is not Ellipsis:
            yield from _leaves(item, dims - 1)


def _lines(items: Any, dims: int, indent: int, formatter: _AnyFormatter) -> str:
    if dims == 0:
        return formatter.format(items)
    if dims == 1:
        each = formatter.width + 2
        count = max(1, math.floor((_options.linewidth - indent) / each))
        texts = [" ..." if item is Ellipsis else formatter.format(item) for item in items]
        rows = [", ".join(texts[i : i + count]) for i in range(0, len(texts), count)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = [
        "..." if item is Ellipsis else _lines(item, dims - 1, indent + 1, formatter)
        for item in items
    ]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(parts) + "]"


def _body(tensor: Tensor, indent: int) -> str:
    dims = tensor.dim()
    if tensor.numel() > _options.threshold:
        items = _edges(tensor)
    else:
        items = tensor.tolist()
    leaves = list(_leaves(items, dims))
    formatter: _AnyFormatter
    if tensor.is_complex():
        formatter = _ComplexFormatter(leaves)
    else:
        formatter = _Formatter(leaves, tensor.is_floating_point())
    return _lines(items, dims, indent, formatter)


def _batched_repr(level: int, size: int, value: Tensor) -> str:
    """The text of a batched tensor inside vmap: all examples, with the batch in dimension 0."""
    inner = tensor_repr(value).replace("\n", "\n    ")
    return f"BatchedTensor(level={level}, batch_size={size}, value=\n    {inner}\n)"


def tensor_repr(tensor: Tensor, tensor_contents: str | None = None) -> str:
    """The text of a tensor. tensor_contents: text that is shown instead of the elements."""
    batched = _C._vmap_inspect(tensor)
    if batched is not None:
        return _batched_repr(*batched)
    kind = type(tensor)
    prefix = "tensor(" if kind is _C.Tensor else f"{kind.__name__}("
    indent = len(prefix)
    default = _C.get_default_dtype()
    usual = (default, default.to_complex(), _C.int64, _C.bool)
    suffixes = []
    device = tensor.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    if tensor_contents is not None:
        body = tensor_contents
    elif device.type == "meta" or _C._is_wrapper(tensor):
        suffixes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            suffixes.append(f"dtype={tensor.dtype}")
        body = "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            suffixes.append(f"dtype={tensor.dtype}")
        body = "[]"
    else:
        if tensor.dtype not in usual:
            suffixes.append(f"dtype={tensor.dtype}")
        body = _body(tensor.detach(), indent)
    if not tensor.is_leaf:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    from lamella.autograd.forward_ad import unpack_dual

    tangent = unpack_dual(tensor).tangent
    if tangent is not None:
        suffixes.append(f"tangent={tangent!r}")
    text = with_suffixes(prefix + body, suffixes, indent)
    # A parameter whose class is another subclass of Tensor has the attribute `_is_param`.
    own = kind is not _C.Tensor and getattr(tensor, "_is_param", False)
    return f"Parameter({text})" if own else text


def with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Appends suffixes to the text; a suffix that would make the line too long starts a new line.
    new_line: the first suffix always does."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column, new_line = indent + len(suffix), False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"
