"""lamella.autograd.backward and grad."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from lamella import _C, Tensor

if TYPE_CHECKING:
    from lamella.autograd.graph import GradientEdge

    TensorsOrEdges = Union[Tensor, GradientEdge, Sequence[Union[Tensor, GradientEdge]]]
    Gradients = Union[Tensor, Sequence[Union[Tensor, None]], None]


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Gradients = None,
    inputs: TensorsOrEdges | None = None,
) -> None:
    """Adds the gradients of `tensors` to the attribute `grad` of all leaves, or only of `inputs`.

    grad_tensors: a gradient for each tensor, of its shape; None means ones and is allowed for
    tensors of one element. The graph is freed unless `retain_graph`; with `create_graph` the
    gradients can themselves be differentiated.
    """
    if "lamella._sparse_tensor" in sys.modules:
        given = (tensors, grad_tensors, grad_variables, inputs)
        tensors, grad_tensors, grad_variables, inputs = map(_values_of, given)
    _C._backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)


def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` with respect to each of `inputs`, as a tuple.

    grad_outputs: a gradient for each output, as in backward(); with `is_grads_batched` they and the
    results have an additional first dimension. For an input that the outputs do not depend on, the
    result is an error, None with `allow_unused`, or zeros with `materialize_grads`.
    """
    if not only_inputs:
        raise ValueError("grad: expected 'only_inputs' to be True; call backward() for all leaves")
    if materialize_grads:
        if allow_unused is False:
            raise ValueError(
                "grad: expected 'allow_unused' not to be False, as 'materialize_grads' allows it"
            )
        allow_unused = True
    wanted = inputs
    if "lamella._sparse_tensor" in sys.modules:
        outputs, inputs, grad_outputs = map(_values_of, (outputs, inputs, grad_outputs))
    result: tuple[Any, ...]
    if is_grads_batched:
        result = _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    else:
        result = _C._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    if materialize_grads:
        result = tuple(
            _zeros_like(of).requires_grad_(create_graph) if each is None else each
            for each, of in zip(result, _as_tuple(inputs))
        )
    if wanted is inputs:
        return result
    return tuple(
        of._with(each) if each is not None and _is_sparse(of) else each
        for each, of in zip(result, _as_tuple(wanted))
    )


def _as_tuple(inputs: TensorsOrEdges) -> tuple[Any, ...]:
    single = isinstance(inputs, Tensor) or hasattr(inputs, "node")
    return (inputs,) if single else tuple(inputs)


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout != _C.strided


def _values_of(tensors: Any) -> Any:
    """Replaces sparse tensors by their values, which are what the backward graph refers to."""
    if isinstance(tensors, (list, tuple)):
        return [_values_of(t) for t in tensors] if any(map(_is_sparse, tensors)) else tensors
    return tensors._values() if _is_sparse(tensors) else tensors


def _zeros_like(tensor: Any) -> Tensor:
    import lamella

    if not isinstance(tensor, Tensor):
        raise RuntimeError(
            "grad: materialize_grads cannot be used when the given input is a GradientEdge that "
            "the outputs do not depend on, as it has no shape"
        )
    return lamella.zeros_like(tensor.detach())


def _batched(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: Gradients,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
) -> tuple[Tensor | None, ...]:
    """Runs one backward under vmap for all entries of the batch of gradients."""
    import lamella

    grads = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs or ())
    sizes = {each.shape[0] for each in grads if each is not None and each.dim() > 0}
    if len(sizes) != 1 or any(each is not None and each.dim() == 0 for each in grads):
        raise RuntimeError(
            "grad: expected all of 'grad_outputs' to have one size in their first dimension "
            f"because of 'is_grads_batched', got {sorted(sizes)}"
        )
    (size,) = sizes
    given = _as_tuple(inputs)
    if size == 0:
        return tuple(lamella.zeros((0, *of.shape), dtype=of.dtype) for of in given)
    found = [False] * len(given)

    def run(*vectors: Tensor) -> tuple[Tensor, ...]:
        rest = iter(vectors)
        row = [None if each is None else next(rest) for each in grads]
        result = _C._grad(outputs, inputs, row, retain_graph, create_graph, allow_unused)
        found[:] = [each is not None for each in result]
        return tuple(each for each in result if each is not None)

    stacked = iter(lamella.vmap(run)(*(each for each in grads if each is not None)))
    return tuple(next(stacked) if there else None for there in found)
