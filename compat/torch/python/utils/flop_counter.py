"""torch.utils.flop_counter: counts the floating-point operations of a program.

A multiplication and an addition are two operations. Matrix products, convolutions, attention and
recurrent layers are counted; elementwise operators are not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import Module
from lamella.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from lamella.utils._python_dispatch import TorchDispatchMode

aten = lamella.ops.aten
Formula = Callable[..., int]

# For each operator a function of the call's arguments and, as `out_val`, its result.
flop_registry: dict[Any, Formula] = {}


def _shape_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (tuple, list)):
        return type(value)(_shape_of(part) for part in value)
    return value


def shape_wrapper(formula: Formula) -> Formula:
    """Adapts a formula for shapes to tensors: `out_shape` is the shape of `out_val`."""

    def of_shapes(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        named = {name: _shape_of(value) for name, value in kwargs.items()}
        return formula(*map(_shape_of, args), out_shape=_shape_of(out_val), **named)

    return of_shapes


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator: registers the formula for an operator, or for each of a list.

    The formula gets the call's arguments with tensors replaced by their shapes, and the result's
    shapes as out_shape. With get_raw it gets the tensors themselves, and the result as out_val.
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (tuple, list)) else [targets]:
            flop_registry[target] = formula if get_raw else shape_wrapper(formula)
        return formula

    return register


def _product(rows: int, inner: int, columns: int) -> int:
    return 2 * rows * inner * columns


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """[m, k] times [k, n]."""
    return _product(a_shape[0], a_shape[1], b_shape[1])


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """[m, k] times [k, n]; the addition is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """[b, m, k] times [b, k, n]."""
    return int(a_shape[0] * mm_flop(a_shape[1:], b_shape[1:]))


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """[b, m, k] times [b, k, n]; the addition is not counted."""
    return bmm_flop(a_shape, b_shape)


@register_flop_formula(aten.linear)
def _linear_flop(x_shape: Any, weight_shape: Any, *args: Any, **kwargs: Any) -> int:
    return _product(math.prod(x_shape[:-1]), x_shape[-1], math.prod(weight_shape[:-1]))


@register_flop_formula(aten.linear_backward)
def _linear_backward_flop(
    x_shape: Any, grad_shape: Any, weight_shape: Any, mask: Any, *args: Any, **kwargs: Any
) -> int:
    return _linear_flop(x_shape, weight_shape) * (bool(mask[0]) + bool(mask[1]))


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """The operations of a convolution without its bias. Shapes: [batch, channels, sizes ...];
    weight: [out channels, in channels of a group, kernel ...]."""
    places = (x_shape if transposed else out_shape)[2:]
    return int(2 * x_shape[0] * math.prod(places) * math.prod(w_shape))


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """See conv_flop_count()."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_shape: Any,
    x_shape: Any,
    w_shape: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
    **kwargs: Any,
) -> int:
    """The gradients of input and weight each cost as much as the convolution."""
    once = conv_flop_count(x_shape, w_shape, grad_shape, transposed)
    return once * (bool(output_mask[0]) + bool(output_mask[1]))


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Two matrix products over [batch, heads, length, size]."""
    batch, heads, length, size = query_shape
    keys = key_shape[-2]
    return int(
        batch * heads * (_product(length, size, keys) + _product(length, keys, value_shape[-1]))
    )


def sdpa_backward_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Five matrix products, because the scores are recomputed."""
    batch, heads, length, size = query_shape
    keys, columns = key_shape[-2], value_shape[-1]
    of_size, of_columns = _product(length, size, keys), _product(length, keys, columns)
    return int(batch * heads * (3 * of_size + 2 * of_columns))


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    """See sdpa_flop_count()."""
    return sdpa_flop_count(q, k, v)


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(grad: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    """See sdpa_backward_flop_count()."""
    return sdpa_backward_flop_count(q, k, v)


@register_flop_formula(aten._rnn_layer)
def _rnn_layer_flop(steps: Any, h: Any, c: Any, weight: Any, *args: Any, **kwargs: Any) -> int:
    return int(2 * steps[0] * math.prod(weight))


@register_flop_formula(aten._rnn_layer_backward)
def _rnn_layer_backward_flop(
    grad: Any, grad_h: Any, grad_c: Any, h: Any, w: Any, w_hr: Any, out: Any, *args: Any, **kw: Any
) -> int:
    return int(4 * out[0] * math.prod(w))


class FlopCounterMode(TorchDispatchMode):
    """Counts the operations executed in the block, in total and for each module.

    depth: the number of module levels in the table. display: whether the table is printed at the
    end. custom_mapping: further formulas by operator, as for register_flop_formula().
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Formula] | None = None,
    ) -> None:
        self.depth = depth
        self.display = display
        further = {
            op: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **further}
        self.flop_counts: dict[str, dict[Any, int]] = {}
        self._clear()

    def _clear(self) -> None:
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self._names: dict[Module, str] = {}
        self._inside: list[str] = []
        self._open: list[Module] = []

    def get_total_flops(self) -> int:
        """The total count."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts by module ("Global" for all) and operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, down to a depth of modules."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            for op, count in (
                ("", sum(self.flop_counts[name].values())),
                *sorted(((f" - {op}", n) for op, n in self.flop_counts[name].items()), key=str),
            ):
                label = " " * level + (op or name)
                rows.append((label, f"{count:,}", f"{100 * count / total:.2f}%"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self._clear()
        self._hooks = [
            register_module_forward_pre_hook(self._begin_forward),
            register_module_forward_hook(self._end, always_call=True),
            register_module_full_backward_pre_hook(self._begin),
            register_module_full_backward_hook(self._end_backward),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        if self.display:
            print(self.get_table())

    def _begin_forward(self, module: Module, *given: Any) -> None:
        for ended in self._open:
            self._end(ended)
        self._open.clear()
        self._begin(module)

    def _begin(self, module: Module, *given: Any) -> None:
        if module not in self._names:
            whole = type(module).__name__
            for name, part in module.named_modules():
                self._names.setdefault(part, f"{whole}.{name}" if name else whole)
        self._inside.append(self._names[module])

    def _end(self, module: Module, *given: Any) -> None:
        if self._names.get(module) in self._inside:
            self._inside.remove(self._names[module])

    def _end_backward(self, module: Module, grad_input: Any, grad_output: Any) -> None:
        # If no input requires gradients, the hook runs at the beginning of the module's backward.
        # The operations from there to the next forward are then counted for the module.
        if any(grad is not None for grad in grad_input):
            self._end(module)
        else:
            self._open.append(module)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = self.flop_registry.get(func) or self.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=result)
            for name in {"Global", *self._inside}:
                self.flop_counts[name][func.overloadpacket] += count
        return result
