"""Pooling of lamella.nn.functional, and the reverse of max pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import lamella
from lamella import _C, Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

if TYPE_CHECKING:
    from typing import Literal, overload

    class _MaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            *,
            return_indices: Literal[True],
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> Any: ...

    class _MaxPoolWithIndices(Protocol):
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> tuple[Tensor, Tensor]: ...


_nn = _C._functions("nn")


# ---- Windows at each place, and adaptive ones ----


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, int) else value


def _max_pool(
    name: str, with_indices: Callable[..., Any], values_alone: Callable[..., Tensor]
) -> tuple[_MaxPoolWithIndices, _MaxPool]:
    """The function that returns values and indices, and the one that returns indices only with
    `return_indices`."""

    def both(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The largest element of each window and its index, whatever `return_indices` is."""
        stride = [] if stride is None else stride
        return tuple(with_indices(input, kernel_size, stride, padding, dilation, ceil_mode))

    def pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window, with `return_indices` also its index."""
        if return_indices:
            return both(input, kernel_size, stride, padding, dilation, ceil_mode)
        stride = [] if stride is None else stride
        return values_alone(input, kernel_size, stride, padding, dilation, ceil_mode)

    both.__name__ = both.__qualname__ = f"{name}_with_indices"
    pool.__name__ = pool.__qualname__ = name
    return both, pool


max_pool1d_with_indices, max_pool1d = _max_pool(
    "max_pool1d", lamella.max_pool1d_with_indices, lamella.max_pool1d
)
max_pool2d_with_indices, max_pool2d = _max_pool(
    "max_pool2d", _nn["max_pool2d_with_indices"], lamella.max_pool2d
)
max_pool3d_with_indices, max_pool3d = _max_pool(
    "max_pool3d", _nn["max_pool3d_with_indices"], lamella.max_pool3d
)


def _adaptive_sizes(
    op: str, input: Tensor, output_size: int | Sequence[int | None] | None, count: int
) -> list[int]:
    """The output sizes: a single number applies to all dimensions, None keeps the input's size."""
    sizes: Sequence[int | None]
    if output_size is None or isinstance(output_size, int):
        sizes = [output_size] * count
    else:
        sizes = output_size
        if input.dim() <= len(sizes):
            raise ValueError(
                f"{op}: expected 'input' to have more than {len(sizes)} dimensions, "
                f"got {list(input.shape)}"
            )
    own = input.shape[-count:]
    return [own[i] if size is None else size for i, size in enumerate(sizes)]


def _adaptive(
    op: str, input: Tensor, output_size: int | Sequence[int | None] | None, count: int
) -> Any:
    return _nn[op](input, _adaptive_sizes(op, input, output_size, count))


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return lamella.adaptive_avg_pool1d(input, _listed(output_size))


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return _adaptive("adaptive_avg_pool2d", input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The mean of one window of the input for each element of the output."""
    return _adaptive("adaptive_avg_pool3d", input, output_size, 3)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    values, indices = lamella.adaptive_max_pool1d(input, _listed(output_size))
    return values, indices


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    return tuple(_adaptive("adaptive_max_pool2d", input, output_size, 2))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The largest element of one window of the input for each element of the output, and its
    index."""
    return tuple(_adaptive("adaptive_max_pool3d", input, output_size, 3))


def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool1d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool2d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """The largest element of one window of the input for each element of the output."""
    both = adaptive_max_pool3d_with_indices(input, output_size)
    return both if return_indices else both[0]


# ---- Means of powers, the reverse of max pooling, random windows ----


def _lp_pool(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool, count: int
) -> Tensor:
    pool = (lamella.avg_pool1d, _nn["avg_pool2d"], _nn["avg_pool3d"])[count - 1]
    kernel = _all(kernel_size, count)
    mean = pool(input.pow(norm_type), kernel, _all(stride, count, kernel), 0, ceil_mode)
    # relu() passes no gradient at 0, where the gradient of the root is not finite.
    size = mean.sign() * lamella.relu(mean.abs())
    return (size * math.prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of order `norm_type` of each window."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)


def _all(value: int | Sequence[int] | None, count: int, default: Any = None) -> list[int]:
    value = default if value is None else value
    return [value] * count if isinstance(value, int) else [int(v) for v in value]


def _unpool(
    name: str,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Sequence[int] | None,
    count: int,
) -> Tensor:
    kernel = _all(kernel_size, count)
    step = _all(stride, count, kernel)
    pad = _all(padding, count)
    least = [(input.size(d - count) - 1) * step[d] - 2 * pad[d] + kernel[d] for d in range(count)]
    size = least if output_size is None else [int(n) for n in output_size][-count:]
    for n, middle, s in zip(size, least, step):
        if output_size is not None and not middle - s < n < middle + s:
            raise ValueError(f"{name}: expected 'output_size' near {least}, got {size}")
    if count == 1:
        given = [t.unsqueeze(-1) for t in (input, indices)]
        return _nn["max_unpool2d"](*given, [*size, 1]).squeeze(-1)
    if count == 2:
        return _nn["max_unpool2d"](input, indices, size)
    return _nn["max_unpool3d"](input, indices, size, step, pad)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool1d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool2d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts results of max_pool3d back to the positions in `indices`; all others are 0."""
    return _unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)


def _fractional(
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Tensor | None,
    count: int,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{count}d"
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: expected either 'output_size' or 'output_ratio'")
    if output_size is None:
        ratios = [output_ratio] * count if isinstance(output_ratio, float) else output_ratio
        output_size = [int(input.size(d - count) * r) for d, r in enumerate(ratios)]
    if samples is None:
        lines = [1, *input.shape[:1]] if input.dim() == count + 1 else [*input.shape[:2]]
        samples = lamella.rand([*lines, count], dtype=input.dtype, device=input.device)
    operator = _nn[name]
    return tuple(operator(input, _all(kernel_size, count), _all(output_size, count), samples))


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest element of each of randomly placed windows, and its index."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of each of randomly placed windows."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest element of each of randomly placed windows, and its index."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest element of each of randomly placed windows."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return both if return_indices else both[0]
