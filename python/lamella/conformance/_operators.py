"""Checks that compare operators with the CPU: results, and what in-place and out= forms write. The
inputs are values for which every function is defined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import lamella
from lamella.conformance._checks import Check, same

UNARY = """abs acos asin atan ceil cos cosh erf erfc exp exp2 expm1 floor frac isnan lgamma log
log10 log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc"""
BINARY = "add sub mul div pow atan2 maximum minimum fmod remainder eq ne lt le gt ge hypot"
REDUCTIONS = "sum mean prod amax amin var std logsumexp all any argmax argmin"
TENSORS_ONLY = "atan2 maximum minimum hypot"
WITHOUT_OUT = "isnan relu square"
INTEGER = "bitwise_and bitwise_or bitwise_xor"
SHAPES: dict[str, Callable[[Any], Any]] = {
    "cat": lambda x: lamella.cat([x, x * 2], 1),
    "stack": lambda x: lamella.stack([x, x + 1]),
    "split": lambda x: x.split(2, 1),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(),
    "permute": lambda x: x.permute(1, 0).contiguous(),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, 0),
    "repeat": lambda x: x.repeat(2, 2),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "diag": lambda x: x[:2, :2].diag(),
    "gather": lambda x: x.gather(1, _like(x, [[0, 2], [1, 1], [3, 0]])),
    "scatter": lambda x: x.scatter(1, _like(x, [[0], [1], [2]]), 5.0),
    "index_select": lambda x: x.index_select(1, _like(x, [2, 0])),
    "index": lambda x: x[_like(x, [2, 0]), 1:],
    "index by the CPU's indices": lambda x: x[lamella.tensor([2, 0])],
    "masked_select": lambda x: x[x > 0.5],
    "masked_fill": lambda x: x.masked_fill(x > 0.5, -1.0),
    "where": lambda x: lamella.where(x > 0.5, x, -x),
    "nonzero": lambda x: (x > 0.5).nonzero(),
    "sort": lambda x: x.sort(1),
    "topk": lambda x: x.topk(2),
    "cumsum": lambda x: x.cumsum(1),
    "clamp": lambda x: x.clamp(0.3, 0.7),
    "lerp": lambda x: lamella.lerp(x, x + 1, 0.25),
    "addcmul": lambda x: lamella.addcmul(x, x, x, value=0.5),
    "unique": lambda x: lamella.unique((x * 4).long()),
    "mm": lambda x: x @ x.t(),
    "addmm": lambda x: lamella.addmm(x @ x.t(), x, x.t()),
    "bmm": lambda x: x.expand(2, 3, 4) @ x.t().expand(2, 4, 3),
    "mv": lambda x: x.mv(x[0]),
    "dot": lambda x: x[0].dot(x[1]),
    "einsum": lambda x: lamella.einsum("ij,kj->ik", x, x),
    "linalg.solve": lambda x: lamella.linalg.solve(_square(x), x),
    "linalg.inv": lambda x: lamella.linalg.inv(_square(x)),
    "linalg.cholesky": lambda x: lamella.linalg.cholesky(_square(x)),
    "linalg.eigvalsh": lambda x: lamella.linalg.eigvalsh(_square(x)),
    "linalg.vector_norm": lambda x: lamella.linalg.vector_norm(x),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer_norm": lambda x: lamella.nn.functional.layer_norm(x, (4,)),
    "batch_norm": lambda x: lamella.nn.functional.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: lamella.nn.functional.group_norm(x.reshape(1, 4, 3), 2),
    "linear": lambda x: lamella.nn.functional.linear(x, x),
    "embedding": lambda x: lamella.nn.functional.embedding(_like(x, [0, 2]), x),
    "conv2d": lambda x: lamella.nn.functional.conv2d(
        x.reshape(1, 1, 3, 4), x[:2, :2].reshape(1, 1, 2, 2).contiguous()
    ),
    "max_pool2d": lambda x: lamella.nn.functional.max_pool2d(x.reshape(1, 1, 3, 4), 2),
    "avg_pool2d": lambda x: lamella.nn.functional.avg_pool2d(x.reshape(1, 1, 3, 4), 2),
    "gelu": lambda x: lamella.nn.functional.gelu(x),
    "cross_entropy": lambda x: lamella.nn.functional.cross_entropy(x, _like(x, [0, 1, 2])),
    "mse_loss": lambda x: lamella.nn.functional.mse_loss(x, x * 2),
}
IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "add_": lambda x: x.add_(2, alpha=3),
    "mul_ by a number": lambda x: x.mul_(2),
    "mul_ by a tensor": lambda x: x.mul_(x),
    "exp_": lambda x: x.exp_(),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "clamp_": lambda x: x.clamp_(0.3, 0.6),
    "copy_": lambda x: x.copy_(x[0]),
    "masked_fill_": lambda x: x.masked_fill_(x > 0.5, 0.0),
    "index_add_": lambda x: x.index_add_(0, _like(x, [1, 1]), x[:2].clone()),
    "scatter_": lambda x: x.scatter_(1, _like(x, [[0], [1], [2]]), 5.0),
    "index_put_": lambda x: _put(x),
    "uniform_ under a seed": lambda x: _seeded(x),
    "sub_ on a column": lambda x: x[:, 1].sub_(1),
    "transpose_": lambda x: x.transpose_(0, 1),
}
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")


def _like(x: Any, values: Any) -> Any:
    return lamella.tensor(values, device=x.device)


def _square(x: Any) -> Any:
    return x @ x.t() + lamella.eye(3, device=x.device)


def _put(x: Any) -> Any:
    x[_like(x, [0, 2]), _like(x, [1, 3])] = 7.0
    return x


def _seeded(x: Any) -> Any:
    """The CPU's numbers of a seed. A device whose generators are of another kind, as their states
    show, has numbers of its own: it must repeat them."""
    lamella.manual_seed(3)
    x.uniform_()
    if lamella.Generator(x.device).get_state().numel() == lamella.get_rng_state().numel():
        return x
    first = x.cpu()
    lamella.manual_seed(3)
    x.uniform_()
    repeats = first.tolist() == x.tolist() and len(set(first.flatten().tolist())) == x.numel()
    lamella.manual_seed(3)
    numbers = lamella.empty(x.shape, dtype=x.dtype).uniform_()
    return x.copy_(numbers) if repeats and 0 <= first.min() and first.max() < 1 else x


def _values(dtype: str = "float32") -> Any:
    """3 by 4 distinct numbers between 0 and 1, or small integers for integer dtypes."""
    x = (lamella.arange(12) * 7 % 13).reshape(3, 4)
    if dtype.startswith(("float", "bfloat")):
        return ((x + 1).to(lamella.float64) / 14).to(getattr(lamella, dtype))
    return x.to(getattr(lamella, dtype))


def _compare(device: Any, function: Callable[..., Any], *inputs: Any) -> None:
    """Calls a function on the CPU and on the device; compares the results and the inputs after the
    call."""
    expected_inputs = [x.clone() for x in inputs]
    mine = [x.to(device) for x in inputs]
    expected = function(*expected_inputs)
    got = function(*mine)
    for tensor in got if isinstance(got, (tuple, list)) else [got]:
        if isinstance(tensor, lamella.Tensor):
            assert (
                tensor.device.type == device.type
            ), f"expected a result on {device}, got {tensor.device}"
    same(got, expected)
    same(mine, expected_inputs, "argument")


def _forms(name: str, count: int, device: Any) -> None:
    """Checks one pointwise operator: plain and out= forms, with strided, empty and broadcast
    inputs."""
    function = getattr(lamella, name)
    inputs = [_values(), _values() + 0.5][:count]
    _compare(device, function, *inputs)
    _compare(device, function, *(x.t() for x in inputs))
    _compare(device, function, *(x[:, ::2] for x in inputs))
    _compare(device, function, *(x[:0] for x in inputs))
    if count == 2:
        _compare(device, function, inputs[0], inputs[1][:1])
    if count == 2 and name not in TENSORS_ONLY.split():
        _compare(device, lambda x: function(x, 2.5), inputs[0])

    def with_out(*tensors: Any) -> Any:
        out = lamella.empty(0, dtype=function(*tensors).dtype, device=tensors[0].device)
        return function(*tensors, out=out)

    if name not in WITHOUT_OUT.split():
        _compare(device, with_out, *inputs)


def _reduction(name: str, device: Any) -> None:
    function = getattr(lamella, name)
    x = _values() > 0.5 if name in ("all", "any") else _values()
    _compare(device, lambda t: function(t, 1), x)
    _compare(device, lambda t: function(t, 0, keepdim=True), x.t())
    if name not in ("logsumexp",):
        _compare(device, lambda t: function(t), x)


def _dtype(dtype: str, device: Any) -> None:
    x = _values(dtype)
    _compare(device, lambda t: t + t, x)
    _compare(device, lambda t: t * t, x)
    _compare(device, lambda t: t.sum(), x)
    _compare(device, lambda t: t.eq(t[0]), x)
    _compare(device, lambda t: t.fill_(1), x)


def checks() -> list[Check]:
    made = []

    def add(name: str, run: Callable[[Any], None]) -> None:
        made.append(Check(f"operator {name}", run))

    for name in UNARY.split():
        add(name, functools.partial(_forms, name, 1))
    for name in BINARY.split():
        add(name, functools.partial(_forms, name, 2))
    for name in INTEGER.split():
        function = getattr(lamella, name)
        add(name, functools.partial(_on, function, _values("int64"), _values("int64").flip(1)))
    for name in REDUCTIONS.split():
        add(name, functools.partial(_reduction, name))
    for name, function in (SHAPES | IN_PLACE).items():
        add(name, functools.partial(_on, function, _values()))
    for dtype in DTYPES:
        add(f"on {dtype}", functools.partial(_dtype, dtype))
    return made


def _on(function: Callable[..., Any], *arguments: Any) -> None:
    *inputs, device = arguments
    _compare(device, function, *inputs)
