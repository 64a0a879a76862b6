"""Derivatives of functions: vjp, jvp, jacobian, hessian, and products with the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union

from lamella import _C, Tensor
from lamella.autograd._engine import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

if TYPE_CHECKING:
    _Function = Callable[..., Any]
    _Given = Union[Tensor, Sequence[Tensor]]
    _Vectors = Sequence[Union[Tensor, None]]


def _as_tuple(value: Any, name: str, what: str) -> tuple[tuple[Tensor, ...], bool]:
    if isinstance(value, Tensor):
        return (value,), True
    given = tuple(value) if isinstance(value, (tuple, list)) else None
    if given is None or not all(isinstance(each, Tensor) for each in given):
        raise TypeError(
            f"{what}: expected '{name}' to be a Tensor or a tuple of Tensors, "
            f"got {type(value).__name__}"
        )
    return given, False


def _fresh(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Aliases of the inputs that require gradients; with create_graph connected to the inputs."""
    if create_graph:
        return tuple(
            each.view_as(each) if each.requires_grad else each.detach().requires_grad_()
            for each in inputs
        )
    return tuple(each.detach().requires_grad_() for each in inputs)


def _run(
    func: _Function, inputs: _Given, what: str, create_graph: bool
) -> tuple[tuple[Tensor, ...], bool, tuple[Tensor, ...], bool]:
    given, single = _as_tuple(inputs, "inputs", what)
    fresh = _fresh(given, create_graph)
    outputs, single_output = _as_tuple(func(*fresh), "the outputs of 'func'", what)
    return fresh, single, outputs, single_output


def _finish(
    values: tuple[Tensor, ...], single: bool, create_graph: bool
) -> Tensor | tuple[Tensor, ...]:
    if not create_graph:
        values = tuple(each.detach() for each in values)
    return values[0] if single else values


def _zeros(tensor: Tensor) -> Tensor:
    import lamella

    return lamella.zeros_like(tensor.detach())


def _pull(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    grads: _Vectors,
    create_graph: bool,
    strict: bool,
    what: str,
) -> tuple[Tensor, ...]:
    """The gradients of `inputs`. An input that the outputs do not depend on gets zeros, or is an
    error if `strict`."""
    pairs = [(out, g) for out, g in zip(outputs, grads) if out.requires_grad]
    if strict and len(pairs) < len(outputs):
        raise RuntimeError(f"{what}: expected all outputs to depend on the inputs")
    if not pairs:
        return tuple(_zeros(each) for each in inputs)
    result = grad(
        [out for out, _ in pairs],
        inputs,
        [g for _, g in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(each is None for each in result):
        raise RuntimeError(f"{what}: expected the outputs to depend on all inputs")
    return tuple(_zeros(of) if each is None else each for each, of in zip(result, inputs))


def _check_vector(
    v: _Given | None, like: tuple[Tensor, ...], what: str, against: str
) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{what}: expected 'v', as 'func' has more than one element in its {against}"
            )
        import lamella

        return (lamella.ones_like(like[0].detach()),)
    given, _ = _as_tuple(v, "v", what)
    if len(given) != len(like) or any(a.shape != b.shape for a, b in zip(given, like)):
        raise RuntimeError(
            f"{what}: expected 'v' to have the shapes of the {against}, "
            f"{[tuple(each.shape) for each in like]}, got {[tuple(each.shape) for each in given]}"
        )
    return given


def vjp(
    func: _Function,
    inputs: _Given,
    v: _Given | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the product of `v` with the Jacobian)."""
    with _C.enable_grad():
        xs, single, ys, single_output = _run(func, inputs, "vjp", create_graph)
        vector = _check_vector(v, ys, "vjp", "outputs")
        result = _pull(ys, xs, vector, create_graph, strict, "vjp")
    return _finish(ys, single_output, create_graph), _finish(result, single, create_graph)


def jvp(
    func: _Function,
    inputs: _Given,
    v: _Given | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the product of the Jacobian with `v`), by differentiating a vjp."""
    import lamella

    with _C.enable_grad():
        xs, _, ys, single_output = _run(func, inputs, "jvp", create_graph)
        vector = _check_vector(v, xs, "jvp", "inputs")
        # The vjp is linear in its vector, so that its own vjp is the jvp.
        u = tuple(lamella.zeros_like(each.detach()).requires_grad_() for each in ys)
        pulled = _pull(ys, xs, u, True, strict, "jvp")
        result = _pull(pulled, u, vector, create_graph, False, "jvp")
    return _finish(ys, single_output, create_graph), _finish(result, single_output, create_graph)


def _check_vectorize(what: str, strict: bool, vectorize: bool) -> None:
    if strict and vectorize:
        raise RuntimeError(
            f"{what}: 'strict' and 'vectorize' are not supported together, got True for both"
        )


def jacobian(
    func: _Function,
    inputs: _Given,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of all outputs with respect to all inputs, of shape [*output, *input]."""
    import lamella

    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: expected 'strategy' to be reverse-mode or forward-mode, got '{strategy}'"
        )
    _check_vectorize("jacobian", strict, vectorize)
    with _C.enable_grad():
        xs, single, ys, single_output = _run(func, inputs, "jacobian", create_graph)
        table = []
        for y in ys:
            flat = y.reshape(-1)
            columns: list[list[Tensor]] = [[] for _ in xs]
            for i in range(flat.numel()):
                row = _pull((flat[i],), xs, (None,), create_graph, strict, "jacobian")
                for column, each in zip(columns, row):
                    column.append(each)
            table.append(
                tuple(
                    lamella.stack(column).reshape((*y.shape, *x.shape))
                    if column
                    else lamella.zeros((*y.shape, *x.shape), dtype=x.dtype)
                    for column, x in zip(columns, xs)
                )
            )
    rows = tuple(_finish(row, single, create_graph) for row in table)
    return rows[0] if single_output else rows


def _scalar(func: _Function, what: str) -> Callable[..., Tensor]:
    def checked(*inputs: Tensor) -> Tensor:
        out = func(*inputs)
        if not isinstance(out, Tensor) or out.numel() != 1:
            raise RuntimeError(f"{what}: expected 'func' to return a Tensor of one element")
        return out

    return checked


def hessian(
    func: _Function,
    inputs: _Given,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function whose result has one element."""
    _check_vectorize("hessian", strict, vectorize)
    checked = _scalar(func, "hessian")
    given, single = _as_tuple(inputs, "inputs", "hessian")

    def first(*xs: Tensor) -> Any:
        row = jacobian(lambda *xs: checked(*xs).reshape(()), xs, create_graph=True)
        return row if len(xs) > 1 else row[0]

    table = jacobian(first, given, create_graph=create_graph, strict=strict)
    if single:
        return table[0]
    return table if len(given) > 1 else (table,)


def vhp(
    func: _Function,
    inputs: _Given,
    v: _Given | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the product of `v` with the Hessian)."""
    checked = _scalar(func, "vhp")
    with _C.enable_grad():
        xs, single, (y,), _ = _run(checked, inputs, "vhp", create_graph)
        vector = _check_vector(v, xs, "vhp", "inputs")
        first = _pull((y,), xs, (None,), True, strict, "vhp")
        result = _pull(first, xs, vector, create_graph, strict, "vhp")
    return _finish((y,), True, create_graph), _finish(result, single, create_graph)


def hvp(
    func: _Function,
    inputs: _Given,
    v: _Given | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the product of the Hessian with `v`)."""
    value, product = vhp(func, inputs, v, create_graph, strict)
    if not any(each.is_complex() for each in _as_tuple(inputs, "inputs", "hvp")[0]):
        return value, product
    raise RuntimeError("hvp: expected real inputs, as the Hessian of complex ones is not symmetric")
