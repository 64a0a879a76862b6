"""grad, vjp, jvp and linearize.

Note [How transforms nest]
  A transform replaces its inputs by aliases that require gradients, runs the function, and takes
  gradients with create_graph=True, so that an outer transform or backward() can differentiate its
  results again. The alias of a tensor that already requires gradients is a view, which keeps it
  connected to the outer graph. A result that depends only on the transform's own aliases cannot be
  differentiated from outside, so it is detached.
  The outermost jvp uses forward mode. Forward mode has only one level, so a jvp inside another one
  differentiates vjp with respect to its cotangents, in which it is linear.
  Inside vmap, inputs are first batched at every running level, so that tensors that are shared by
  all examples also have a gradient for each example.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_map_only, tree_unflatten

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "value_and_grad", "vjp"]


# The levels of vmap at which only tangents are batched (those of jacfwd), innermost last.
_TANGENTS_ALONE = threading.local()


@contextmanager
def _of_tangents_alone() -> Iterator[None]:
    """In the block, only tangents are batched at the innermost level of vmap."""
    levels = _TANGENTS_ALONE.__dict__.setdefault("levels", [])
    levels.append(_C._vmap_levels()[-1][0])
    try:
        yield
    finally:
        levels.pop()


def _over_all(x: Tensor) -> Tensor:
    """The tensor, batched at all levels of vmap except those where only tangents are batched."""
    alone = getattr(_TANGENTS_ALONE, "levels", None)
    if not alone:
        return _C._vmap_over_all(x)
    for level, size, _ in reversed(_C._vmap_levels()):
        if level not in alone and not _C._vmap_has_level(x, level):
            x = _C._vmap_over(x, level, size)
    return x


# lamella.compat's rules for transforms: running(name), a context while a transform's function runs,
# and check_aux(name, aux).
_rules: Any = None

_AUTOGRAD: int = _C._dispatch_functionality_bits("Autograd")


@contextmanager
def _recording(name: str) -> Iterator[None]:
    """In the block, gradients are recorded, even where the caller has excluded the keys of
    autograd or has switched recording off."""
    hidden = _C._thread_keys()[1] & _AUTOGRAD
    _C._exclude_keys(hidden, False)
    try:
        with lamella.enable_grad(), _rules.running(name) if _rules else nullcontext():
            yield
    finally:
        _C._exclude_keys(hidden, True)


# The key in the metadata of nodes that marks the aliases of a transform that has ended.
_ENDED = "lamella.func"


class _Scope:
    """One run of a transform: makes the aliases of its inputs, and detaches results that depend
    only on these."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.record = lamella.is_grad_enabled()
        self.own: list[Tensor] = []  # aliases that are not connected to an outer graph

    def alias(self, x: Tensor) -> Tensor:
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError(
                f"{self.name}: expected inputs to be floating-point or complex, got {x.dtype}"
            )
        # Inside vmap, a tensor that all examples share has a gradient for each example.
        x = _over_all(x)
        if x.requires_grad:
            return x.view_as(x)
        # A view keeps the tangent of a dual tensor; without forward mode the alias is a leaf.
        made = x.view_as(x) if _forward_level_is_open() else x.detach()
        made.requires_grad_()
        self.own.append(made)
        return made

    def inputs(self, tree: Any) -> tuple[Any, list[Tensor]]:
        """The tree with its tensors replaced by aliases, and the list of these."""
        leaves, spec = tree_flatten(tree)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(
                    f"{self.name}: expected inputs to be tensors or nests of tensors, got "
                    f"{type(leaf).__name__}"
                )
        made = [self.alias(leaf) for leaf in leaves]
        return tree_unflatten(made, spec), made

    def results(self, tree: Any) -> Any:
        """The tree with tensors detached that depend only on the scope's own aliases."""
        if self.record:
            own = [lamella.autograd.graph.get_gradient_edge(x).node for x in self.own]
            made = tree_map_only(Tensor, lambda y: self._release(y, own), tree)
            for node in own:  # their gradients cannot be requested after this
                node.metadata[_ENDED] = True
            return made
        return tree_map_only(Tensor, lambda y: y.detach() if y.requires_grad else y, tree)

    def _release(self, y: Tensor, own: list[Any]) -> Tensor:
        if _forward_level_is_open():
            # A tangent belongs to an outer transform, and has its own graph.
            from lamella.autograd import forward_ad

            primal, tangent = forward_ad.unpack_dual(y)
            if tangent is not None:
                return forward_ad.make_dual(self._apart(primal, own), self._apart(tangent, own))
        return self._apart(y, own)

    @staticmethod
    def _apart(y: Tensor, own: list[Any]) -> Tensor:
        if y.layout != lamella.strided:  # the graph refers to the values of a sparse tensor
            sparse: Any = y
            values = sparse._values()
            kept: Tensor = sparse._with(_Scope._apart(values, own))
            return kept
        return y.detach() if y.requires_grad and not _reaches_others(y, own) else y


def _forward_level_is_open() -> bool:
    from lamella.autograd import forward_ad

    return forward_ad._current_level >= 0


def _reaches_others(y: Tensor, own: list[Any]) -> bool:
    """Whether the graph of y reaches a leaf that is not in `own`."""
    node: Any = lamella.autograd.graph.get_gradient_edge(y).node
    # A leaf is foreign unless its transform has ended.
    return any(_ENDED not in leaf.metadata for leaf in node._leaves_beyond(own))


def _gradients(
    outputs: list[Tensor], inputs: list[Tensor], cotangents: list[Tensor], retain: bool = True
) -> list[Tensor]:
    """v^T J for each input, with a graph; zeros for inputs that the outputs do not depend on."""
    pairs = [(y, v) for y, v in zip(outputs, cotangents) if y.requires_grad]
    if not pairs:
        return [lamella.zeros_like(x.detach()) for x in inputs]
    found = lamella.autograd.grad(
        [y for y, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=retain,
        create_graph=lamella.is_grad_enabled(),
        allow_unused=True,
    )
    return [lamella.zeros_like(x.detach()) if g is None else g for x, g in zip(inputs, found)]


def _split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise RuntimeError(
            f"{name}: expected the function to return (output, aux), as has_aux is True, got {got}"
        )
    if _rules:
        _rules.check_aux(name, result[1])
    return result


def _output_tensors(name: str, output: Any) -> tuple[list[Tensor], TreeSpec]:
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected the function to return tensors, got {type(leaf).__name__}"
            )
    if not leaves:
        raise RuntimeError(f"{name}: expected the function to return at least one tensor")
    return leaves, spec


# ---- grad


def _positions(name: str, argnums: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(chosen, tuple) or not all(isinstance(i, int) for i in chosen):
        raise RuntimeError(
            f"{name}: expected 'argnums' to be an int or a tuple of ints, got {argnums!r}"
        )
    if not chosen:
        raise RuntimeError(f"{name}: expected 'argnums' not to be empty")
    for i in chosen:
        if not -count <= i < count:
            raise RuntimeError(
                f"{name}: expected 'argnums' to be places of {count} positional arguments, got {i}"
            )
    chosen = tuple(i % count for i in chosen)
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"{name}: expected 'argnums' to be different, got {argnums!r}")
    return chosen


def _grad_value_aux(
    name: str, func: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any
) -> tuple[Any, Any, Any]:
    chosen = _positions(name, argnums, len(args))
    scope = _Scope(name)
    with _recording(name):
        new_args = list(args)
        inputs: list[Tensor] = []
        for i in chosen:
            new_args[i], made = scope.inputs(args[i])
            inputs += made
        output, aux = _split_aux(name, func(*new_args, **kwargs), has_aux)
        if not isinstance(output, Tensor):
            raise RuntimeError(
                f"{name}: expected the function to return a tensor, got {type(output).__name__}"
            )
        if output.dim() != 0:
            raise RuntimeError(
                f"{name}: expected the function to return a tensor without dimensions, got shape "
                f"{list(output.shape)}"
            )
        if output.is_complex():
            raise RuntimeError(
                f"{name}: expected the function to return a real tensor, got {output.dtype}"
            )
        found = iter(_gradients([output], inputs, [lamella.ones_like(output.detach())]))
        grads = tuple(tree_map(lambda _: next(found), args[i]) for i in chosen)
        results = scope.results((grads if isinstance(argnums, tuple) else grads[0], output, aux))
    return results


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of func, whose value must be a real scalar tensor.

    argnums: the arguments to differentiate with respect to, which are tensors or trees of tensors;
    a tuple gives a tuple of gradients. has_aux: func returns (value, aux), and the new function
    (gradient, aux).
    """

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _grad_value_aux("grad", func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return _named(gradient, func)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like grad(), but the function returns (gradient, value), or (gradient, (value, aux))."""

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _grad_value_aux("grad_and_value", func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return _named(gradient_and_value, func)


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like grad(), but the function returns (value, gradient), or ((value, aux), gradient)."""

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _grad_value_aux("value_and_grad", func, argnums, has_aux, args, kwargs)
        return ((value, aux), found) if has_aux else (value, found)

    return _named(value_and_gradient, func)


def _named(made: Any, func: Any) -> Any:
    import functools

    try:
        return functools.wraps(func)(made)
    except (AttributeError, TypeError):
        return made


# ---- vjp


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Returns (func(*primals), vjp_fn); vjp_fn(cotangents) returns a tuple of v^T J for each of the
    primals. has_aux: func returns (output, aux), and vjp (output, vjp_fn, aux)."""
    if not primals:
        raise RuntimeError("vjp: expected at least one of 'primals'")
    scope = _Scope("vjp")
    with _recording("vjp"):
        new_primals, inputs = scope.inputs(primals)
        output, aux = _split_aux("vjp", func(*new_primals), has_aux)
        outputs, out_spec = _output_tensors("vjp", output)
        result, aux = scope.results((output, aux))
    in_spec = tree_flatten(primals)[1]

    def vjp_fn(*cotangents: Any, **options: Any) -> Any:
        # PyTorch's vjp_fn takes retain_graph and create_graph after the cotangents.
        while len(cotangents) > 1 and isinstance(cotangents[-1], bool):
            cotangents = cotangents[:-1]
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        given = options.pop("cotangents", given)
        vectors, spec = tree_flatten(given)
        if spec != out_spec:
            raise RuntimeError(
                f"vjp: expected 'cotangents' to have the structure of the output, {out_spec}, got "
                f"{spec}"
            )
        _check_vectors("vjp", "cotangents", vectors, outputs)
        record = lamella.is_grad_enabled()
        with _recording("vjp"):
            found = tree_unflatten(_gradients(outputs, inputs, vectors), in_spec)
            inner = _Scope("vjp")
            inner.record, inner.own = record, scope.own
            return inner.results(found)

    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


def _check_vectors(name: str, what: str, vectors: list[Any], like: list[Tensor]) -> None:
    for i, (vector, tensor) in enumerate(zip(vectors, like)):
        if not isinstance(vector, Tensor) or vector.shape != tensor.shape:
            got = list(vector.shape) if isinstance(vector, Tensor) else type(vector).__name__
            raise RuntimeError(
                f"{name}: expected '{what}' {i} to be a tensor of shape {list(tensor.shape)}, got "
                f"{got}"
            )


# ---- jvp


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Returns (func(*primals), J t): the derivative along `tangents`, which nest like the primals.

    strict: raises if an output does not depend on the primals. has_aux: func returns (output, aux),
    and jvp (output, J t, aux).
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp: expected 'primals' to be a tuple of arguments, got {type(primals).__name__}"
        )
    points, spec = tree_flatten(primals)
    vectors, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"jvp: expected 'tangents' to have the structure of 'primals', {spec}, got {other}"
        )
    if not points:
        raise RuntimeError("jvp: expected at least one tensor in 'primals'")
    for i, point in enumerate(points):
        if not isinstance(point, Tensor):
            raise RuntimeError(
                f"jvp: expected 'primals' to be tensors or nests of tensors, got "
                f"{type(point).__name__} at {i}"
            )
    _check_vectors("jvp", "tangents", vectors, points)
    if _forward_level_is_open():
        return _jvp_backwards(func, primals, vectors, strict, has_aux)
    return _jvp_forward(func, points, spec, vectors, strict, has_aux)


def _strict_error(i: int) -> RuntimeError:
    return RuntimeError(
        f"jvp: expected output {i} to depend on 'primals', as strict is True, but it does not"
    )


def _jvp_forward(
    func: Any,
    points: list[Tensor],
    spec: TreeSpec,
    vectors: list[Tensor],
    strict: bool,
    has_aux: bool,
) -> Any:
    from lamella.autograd import forward_ad

    # Transforms inside of func need gradients recorded and tangents propagated, even if the caller
    # has switched these off.
    record = lamella.is_grad_enabled()
    tangents_on = forward_ad._set_fwd_grad_enabled(True)
    with tangents_on, forward_ad.dual_level(), _recording("jvp"):
        duals = [forward_ad.make_dual(x.view_as(x), t) for x, t in zip(points, vectors)]
        output, aux = _split_aux("jvp", func(*tree_unflatten(duals, spec)), has_aux)
        outputs, out_spec = _output_tensors("jvp", output)
        primal_out, tangent_out = [], []
        for i, y in enumerate(outputs):
            primal, tangent = forward_ad.unpack_dual(y)
            if tangent is None:
                if strict:
                    raise _strict_error(i)
                tangent = lamella.zeros_like(primal)
            primal_out.append(primal)
            tangent_out.append(tangent)
        aux = tree_map_only(Tensor, lambda a: forward_ad.unpack_dual(a).primal, aux)
    result: Any = tree_unflatten(primal_out, out_spec), tree_unflatten(tangent_out, out_spec)
    result = (*result, aux) if has_aux else result
    if record:
        return result
    return tree_map_only(Tensor, lambda y: y.detach() if y.requires_grad else y, result)


def _transposed(
    scope: _Scope, outputs: list[Tensor], inputs: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Cotangents that require gradients, and v^T J for them, which is linear in them."""
    cotangents = [lamella.zeros_like(y.detach()).requires_grad_() for y in outputs]
    scope.own += cotangents
    return cotangents, _gradients(outputs, inputs, cotangents)


def _jvp_backwards(
    func: Any, primals: Any, vectors: list[Tensor], strict: bool, has_aux: bool
) -> Any:
    scope = _Scope("jvp")
    with _recording("jvp"):
        new_primals, inputs = scope.inputs(primals)
        output, aux = _split_aux("jvp", func(*new_primals), has_aux)
        outputs, out_spec = _output_tensors("jvp", output)
        for i, y in enumerate(outputs):
            if strict and not y.requires_grad:
                raise _strict_error(i)
        cotangents, rows = _transposed(scope, outputs, inputs)
        tangent = tree_unflatten(_gradients(rows, cotangents, vectors), out_spec)
        result = scope.results((output, tangent, aux))
    return result if has_aux else result[:2]


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Returns (func(*primals), jvp_fn); jvp_fn(*tangents) returns J t without running func."""
    if not primals:
        raise RuntimeError("linearize: expected at least one of 'primals'")
    scope = _Scope("linearize")
    with _recording("linearize"):
        new_primals, inputs = scope.inputs(primals)
        output = func(*new_primals)
        outputs, out_spec = _output_tensors("linearize", output)
        cotangents, rows = _transposed(scope, outputs, inputs)
        result = scope.results(output)
    in_spec = tree_flatten(primals)[1]

    def jvp_fn(*tangents: Any) -> Any:
        vectors, spec = tree_flatten(tangents)
        if spec != in_spec:
            raise RuntimeError(
                f"linearize: expected the tangents to have the structure of 'primals', {in_spec}, "
                f"got {spec}"
            )
        _check_vectors("linearize", "tangents", vectors, inputs)
        record = lamella.is_grad_enabled()
        with lamella.enable_grad():
            inner = _Scope("linearize")
            inner.record, inner.own = record, scope.own
            found = tree_unflatten(_gradients(rows, cotangents, vectors), out_spec)
            return inner.results(found)

    return result, jvp_fn
