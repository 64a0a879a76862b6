"""The builder's functions that take computations.

A computation is a Module; or a Python function, which is called with an Op for each parameter and
returns the result; or, for computations of two scalars, the name of a binary function, such as
'add'.
"""

# The functions of the extension module have no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from lamella import _hlo
from lamella._hlo import Builder, Module, Op, Shape
from lamella.hlo import _functions

OpLike = Any
Computation = Union[Module, Callable[..., Any], str]


def computation(
    function: Callable[..., Any], *shapes: Shape | str, name: str | None = None
) -> Module:
    """Builds a module from a function, which is called with a parameter of each of the shapes and
    returns an Op or a tuple of Ops."""
    builder = Builder(name or getattr(function, "__name__", "computation").strip("<>") or "f")
    parameters = [builder.parameter(shape) for shape in shapes]
    return builder.build(_one(builder, function(*parameters)))


def _one(builder: Builder, result: Any) -> Op:
    """Converts a result to one Op: tuples of Ops become tuple Ops, numbers become constants."""
    if isinstance(result, Op):
        return result
    if isinstance(result, (tuple, list)):
        return _hlo.build_tuple(builder, [_one(builder, part) for part in result])
    return builder.constant(result)


def _made(given: Computation, shapes: Sequence[Shape | str], name: str) -> Module:
    if isinstance(given, Module):
        return given
    if isinstance(given, str):
        binary = getattr(_functions, given, None) or getattr(_functions, given + "_", None)
        if binary is None or len(shapes) != 2:
            raise ValueError(f"expected a computation of {len(shapes)} parameters, got '{given}'")
        return computation(binary, *shapes, name=given)
    if not callable(given):
        raise TypeError(
            f"expected a computation to be a Module or a function, got {type(given).__name__}"
        )
    return computation(given, *shapes, name=name)


def _builder_of(*operands: Any) -> Builder | None:
    for operand in operands:
        if isinstance(operand, Op):
            return operand.builder
        if isinstance(operand, (tuple, list)):
            found = _builder_of(*operand)
            if found is not None:
                return found
    return None


def _shape(builder: Builder | None, value: Any, like: Shape | None = None) -> Shape:
    if isinstance(value, Op):
        return value.shape
    if builder is None:
        raise TypeError("expected an Op among the operands")
    if isinstance(value, (bool, int, float, complex)) and like is not None:
        return Shape.array(like.element_type, ())
    return builder.constant(value).shape


def _scalar(shape: Shape) -> Shape:
    return Shape.array(shape.element_type, ())


def _lists(operands: Any, others: Any) -> tuple[list[Any], list[Any], list[Shape]]:
    """The operands and the value that goes with each as lists, where numbers become constants of
    the operand's type; and the parameter shapes of a computation that combines their elements."""
    listed, matching = list(operands), list(others)
    builder = _builder_of(listed, matching)
    scalars = [_scalar(_shape(builder, one)) for one in listed]
    for i, scalar in enumerate(scalars[: len(matching)]):
        if builder is not None and not isinstance(matching[i], Op):
            matching[i] = builder.constant(matching[i], scalar.element_type)
    return listed, matching, scalars + scalars


def reduce(
    operand: OpLike | Sequence[OpLike],
    init_value: OpLike | Sequence[OpLike],
    computation: Computation,
    dimensions_to_reduce: Sequence[int],
) -> Op:
    """Reduces the elements along the dimensions, starting from init_value. Lists of operands are
    reduced together to a tuple; the computation takes an accumulator of each, then an element of
    each."""
    if isinstance(operand, (list, tuple)):
        listed, inits, shapes = _lists(operand, init_value)
        made = _made(computation, shapes, "reducer")
        builder = _builder_of(listed, inits)
        return _hlo.build__reduce_many(builder, listed, inits, made, dimensions_to_reduce)
    scalar = _scalar(_shape(_builder_of(operand, init_value), operand))
    made = _made(computation, (scalar, scalar), "reducer")
    return _hlo.build__reduce(operand, init_value, made, dimensions_to_reduce)


def reduce_all(operand: OpLike, init_value: OpLike, computation: Computation) -> Op:
    """Reduces all elements along all dimensions."""
    rank = _shape(_builder_of(operand, init_value), operand).rank
    return reduce(operand, init_value, computation, list(range(rank)))


def reduce_window(
    operand: OpLike | Sequence[OpLike],
    init_value: OpLike | Sequence[OpLike],
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
) -> Op:
    """Reduces the elements of each window. padding: 'SAME', 'VALID', or (low, high) for each
    dimension, which is required with dilations."""
    many = isinstance(operand, (list, tuple))
    if many:
        operand, init_value, shapes = _lists(operand, init_value)
    else:
        shapes = [_scalar(_shape(_builder_of(operand, init_value), operand))] * 2
    made = _made(computation, shapes, "reducer")
    if isinstance(padding, str):
        if base_dilations or window_dilations:
            raise ValueError("reduce_window: expected 'padding' to be pairs with dilations")
        plain = _hlo.build__reduce_window_many if many else _hlo.build__reduce_window
        return plain(operand, init_value, made, window_dimensions, window_strides, padding)
    padded = _hlo.build__reduce_window_padded_many if many else _hlo.build__reduce_window_padded
    return padded(
        operand,
        init_value,
        made,
        window_dimensions,
        window_strides,
        base_dilations,
        window_dilations,
        padding,
    )


def select_and_scatter(
    operand: OpLike,
    select: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    source: OpLike,
    init_value: OpLike,
    scatter: Computation,
) -> Op:
    """Scatters each element of `source` to the position that `select` picks in its window. padding:
    'SAME', 'VALID', or (low, high) for each dimension."""
    scalar = _scalar(_shape(_builder_of(operand, source), operand))
    picks = _made(select, (scalar, scalar), "select")
    adds = _made(scatter, (scalar, scalar), "scatter")
    function = (
        _hlo.build__select_and_scatter
        if isinstance(padding, str)
        else _hlo.build__select_and_scatter_padded
    )
    return function(
        operand, picks, window_dimensions, window_strides, padding, source, init_value, adds
    )


def scatter(
    input: OpLike | Sequence[OpLike],
    scatter_indices: OpLike,
    updates: OpLike | Sequence[OpLike],
    update_computation: Computation,
    dimension_numbers: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Op:
    """The input with slices of `updates` combined into it at the positions scatter_indices."""
    flags = (indices_are_sorted, unique_indices)
    if isinstance(input, (list, tuple)):
        listed, changes, shapes = _lists(input, updates)
        made = _made(update_computation, shapes, "combiner")
        return _hlo.build__scatter_many(
            listed, scatter_indices, changes, made, dimension_numbers, *flags
        )
    scalar = _scalar(_shape(_builder_of(input, updates), input))
    made = _made(update_computation, (scalar, scalar), "combiner")
    return _hlo.build__scatter(input, scatter_indices, updates, made, dimension_numbers, *flags)


def sort(
    operands: OpLike | Sequence[OpLike],
    comparator: Computation | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> Op:
    """Sorts all operands along a dimension by one order. The comparator takes two elements of the
    first operand, two of the second and so on, and returns whether the first of each pair comes
    first; None: ascending by the first operand. A list of operands gives a tuple."""
    listed = list(operands) if isinstance(operands, (list, tuple)) else [operands]
    builder = _builder_of(listed)
    shapes = [s for one in listed for s in [_scalar(_shape(builder, one))] * 2]
    made = _made(comparator or _ascending, shapes, "comparator")
    return _hlo.build__sort(listed, made, dimension, is_stable)


def _ascending(first: Any, second: Any, *others: Any) -> Any:
    if first.shape.element_type[0] in "fb":
        return _functions.lt_total_order(first, second)
    return _functions.lt(first, second)


def map(
    operands: Sequence[OpLike],
    computation: Computation,
    dimensions: Sequence[int] | None = None,
    *,
    builder: Builder | None = None,
) -> Op:
    """Applies a computation of scalars to each element of the operands."""
    own = builder or _builder_of(operands)
    shapes = [_shape(own, one) for one in operands]
    made = _made(computation, [_scalar(shape) for shape in shapes], "function")
    if dimensions is None:
        dimensions = list(range(shapes[0].rank))
    return _hlo.build__map(own, list(operands), made, dimensions)


def while_(condition: Computation, body: Computation, init: Op) -> Op:
    """Repeats state = body(state), starting with init, while condition(state) is true. Python
    functions get the state as one Op."""
    shape = init.shape
    return _hlo.build__while(
        _made(condition, (shape,), "condition"), _made(body, (shape,), "body"), init
    )


def conditional(
    predicate: Op,
    true_operand: OpLike,
    true_computation: Computation,
    false_operand: OpLike,
    false_computation: Computation,
) -> Op:
    """Runs one of two computations, chosen by a pred."""
    builder = predicate.builder
    return _hlo.build__conditional(
        predicate,
        true_operand,
        _made(true_computation, (_shape(builder, true_operand),), "on_true"),
        false_operand,
        _made(false_computation, (_shape(builder, false_operand),), "on_false"),
    )


def switch(
    branch_index: Op, branch_computations: Sequence[Computation], branch_operands: Sequence[OpLike]
) -> Op:
    """Runs the computation with the number branch_index (s32) on its own operand; if there is no
    such number, the last one."""
    builder = branch_index.builder
    if len(branch_computations) != len(branch_operands):
        raise ValueError(
            f"switch: expected as many operands as computations, {len(branch_computations)}, got "
            f"{len(branch_operands)}"
        )
    made = [
        _made(one, (_shape(builder, operand),), f"branch_{i}")
        for i, (one, operand) in enumerate(zip(branch_computations, branch_operands))
    ]
    return _hlo.build__conditional_branches(branch_index, made, list(branch_operands))


def call(
    computation: Computation, operands: Sequence[OpLike], *, builder: Builder | None = None
) -> Op:
    """Applies the computation to the operands."""
    own = builder or _builder_of(operands)
    made = _made(computation, [_shape(own, one) for one in operands], "callee")
    return _hlo.build__call(own, made, list(operands))


def composite_call(
    computation: Computation,
    operands: Sequence[OpLike],
    name: str,
    attributes: str | None = None,
    version: int | None = None,
    *,
    builder: Builder | None = None,
) -> Op:
    """Like call(), but a compiler may replace the computation by one that it has for `name`."""
    own = builder or _builder_of(operands)
    made = _made(computation, [_shape(own, one) for one in operands], "composite")
    return _hlo.build__composite_call(own, made, list(operands), name, attributes, version)


def all_reduce(
    operand: OpLike, computation: Computation, replica_groups: Sequence[Sequence[int]] = ()
) -> Op:
    """Reduces the operands of all replicas of a group elementwise."""
    scalar = _scalar(_shape(_builder_of(operand), operand))
    made = _made(computation, (scalar, scalar), "reducer")
    return _hlo.build__all_reduce(operand, made, replica_groups)


def reduce_scatter(
    operand: OpLike,
    computation: Computation,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Sequence[Sequence[int]] = (),
) -> Op:
    """Like all_reduce(), but each replica keeps only its part along a dimension."""
    scalar = _scalar(_shape(_builder_of(operand), operand))
    made = _made(computation, (scalar, scalar), "reducer")
    return _hlo.build__reduce_scatter(operand, made, scatter_dimension, shard_count, replica_groups)
