"""Operators of Lamella as functions of JAX.

Note [Primitives]
  Each operator is a Primitive. Its abstract evaluation asks the Meta kernel, its lowering is a
  custom call of liblamella_bridge.so, and its rules for gradients, tangents and batches bind one
  other Primitive, `lamella_call`, whose parameter is a chain (_transform.py): every order of
  every transform is there. A chain that is a formula of built-in operators becomes a part of the
  program (_jax_formula.py); others are a custom call as well.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax import core
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lamella.bridge import _library, _transform
from lamella.bridge._jax_formula import formula, text_of
from lamella.bridge._library import Namespaces, Operator
from lamella.bridge._transform import Chain, Meta, Named

_TARGET = "lamella_bridge"
_loaded: dict[str, Namespaces] = {}


def _is_array(x: Any) -> bool:
    return isinstance(x, (jax.Array, numpy.ndarray, numpy.generic, core.Tracer))


def _is_tensor(x: Any) -> bool:
    return _is_array(x) or isinstance(x, (int, float, complex, bool))


def _frozen(value: Any, type_: str) -> Any:
    if isinstance(value, core.Tracer):
        raise TypeError(
            f"expected a value of type {type_} that is known when the program is traced, got "
            f"{type(value).__name__}; mark it static"
        )
    if type_.startswith("ScalarType") and value is not None:
        return Named("dtype", numpy.dtype(value).name)
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return tuple(_frozen(v, type_) for v in value)
    return value.item() if isinstance(value, (numpy.generic, jax.Array)) else value


# ---- Abstract evaluation ----


@functools.lru_cache(maxsize=4096)
def _shapes(chain: Chain, avals: tuple[core.ShapedArray, ...]) -> tuple[core.ShapedArray, ...]:
    """The results of a chain."""
    if not chain.transforms:
        given = [(x.shape, None, jnp.dtype(x.dtype).name) for x in avals]
        made = _transform.metas(chain, given)
        found = [y for one in made for y in (one if isinstance(one, list) else [one])]
        if not all(isinstance(y, Meta) for y in found):
            raise NotImplementedError(f"{chain.operator}: has results that are no tensors")
        return tuple(core.ShapedArray(y.shape, jnp.dtype(y.dtype)) for y in found)
    inner = _transform.without_last(chain)
    kind, *rest = chain.transforms[-1]
    if kind == "vmap":
        (batched,) = rest
        size = next(x.shape[0] for x, b in zip(avals, batched) if b)
        one = tuple(
            core.ShapedArray(x.shape[1:], x.dtype) if b else x for x, b in zip(avals, batched)
        )
        return tuple(core.ShapedArray((size, *y.shape), y.dtype) for y in _shapes(inner, one))
    ins, outs = rest
    primals = tuple(_transform.inputs_of(chain, avals))
    if kind == "vjp":
        return tuple(primals[i] for i in ins)
    results = _shapes(inner, primals)
    return tuple(results[o] for o in outs)


@functools.lru_cache(maxsize=4096)
def _differentiable(chain: Chain, avals: tuple[core.ShapedArray, ...]) -> tuple[int, ...]:
    """The numbers of the results that may have tangents."""
    shapes = _shapes(chain, avals)
    said = [True] * len(shapes)
    if not chain.transforms:
        op = _library.named(chain.operator)
        lists = [r.is_list for r in op.returns]
        if not any(lists):
            said = [op.is_differentiable(r) for r in range(len(shapes))]
        else:
            said = [op.is_differentiable(0)] * len(shapes)
    return tuple(
        o
        for o, (d, y) in enumerate(zip(said, shapes))
        if d and jnp.issubdtype(y.dtype, jnp.inexact)
    )


def _aval(x: Any) -> core.ShapedArray:
    return core.ShapedArray(x.shape, x.dtype)


# ---- The axes of a mesh inside of shard_map ----


def _axes(aval: Any) -> frozenset[Any]:
    """The axes along which the values of devices differ."""
    found: frozenset[Any] = aval.mat.varying if hasattr(aval, "mat") else frozenset()
    return found


def _with_axes(results: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Results that differ between devices as their inputs do, which _same_axes() made alike."""
    if not avals or not _axes(avals[0]):
        return list(results)
    spec = jax.sharding.PartitionSpec
    return [
        core.ShapedArray(
            y.shape, y.dtype, manual_axis_type=avals[0].mat,
            sharding=avals[0].sharding.update(spec=spec(*[None] * len(y.shape))),
        )
        for y in results
    ]  # fmt: skip


def _same_axes(xs: Sequence[Any]) -> list[Any]:
    each = [_axes(jax.typeof(x)) for x in xs]
    every = frozenset().union(*each)
    return [
        jax.lax.pcast(x, tuple(every - axes), to="varying") if every - axes else x
        for x, axes in zip(xs, each)
    ]


# ---- Lowering ----


def _call(chain: Chain, *xs: Any) -> list[Any]:
    """The computation of a chain, as the program has it."""
    avals = tuple(map(_aval, xs))
    text = text_of(chain, avals)
    if text is not None:
        made: list[Any] = formula.bind(*xs, text=text, results=_shapes(chain, avals))
        return made
    results = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in _shapes(chain, avals)]
    return list(jax.ffi.ffi_call(_TARGET, results)(*xs, call=chain.text()))


# ---- Primitives and their rules ----


def _primitive(name: str) -> Primitive:
    made = Primitive(name)
    made.multiple_results = True
    made.def_abstract_eval(
        lambda *avals, chain: _with_axes(_shapes(chain, tuple(map(_aval, avals))), avals)
    )
    made.def_impl(lambda *xs, chain: _compiled(chain)(*xs))
    mlir.register_lowering(
        made, mlir.lower_fun(lambda *xs, chain: _call(chain, *xs), multiple_results=True)
    )
    ad.primitive_jvps[made] = _jvp
    ad.primitive_transposes[made] = _transpose
    batching.primitive_batchers[made] = _batch
    return made


@functools.lru_cache(maxsize=1024)
def _compiled(chain: Chain) -> Callable[..., Any]:
    return jax.jit(lambda *xs: _call(chain, *xs))


def _bound(chain: Chain, xs: Sequence[Any]) -> list[Any]:
    made: list[Any] = _derived.bind(*xs, chain=chain)
    return made


def _jvp(primals: Any, tangents: Any, *, chain: Chain) -> Any:
    primitive = _PRIMITIVES[chain.operator] if not chain.transforms else _derived
    results = primitive.bind(*primals, chain=chain)
    avals = tuple(map(_aval, primals))
    known = None if chain.transforms else _transform.differentiable_inputs(chain)
    ins = tuple(
        i
        for i, t in enumerate(tangents)
        if type(t) is not ad.Zero and jnp.issubdtype(avals[i].dtype, jnp.inexact)
        and (known is None or i in known)
    )  # fmt: skip
    outs = _differentiable(chain, avals)
    out = [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in results]
    if ins and outs:
        made = _bound(chain.then("jvp", ins, outs), [*(tangents[i] for i in ins), *primals])
        for o, t in zip(outs, made):
            out[o] = t
    return results, out


def _transpose(cotangents: Any, *xs: Any, chain: Chain) -> Any:
    """Of a jvp for its tangents, and of a vjp for its cotangents, in which they are linear."""
    linear = [i for i, x in enumerate(xs) if ad.is_undefined_primal(x)]
    if not chain.transforms or chain.transforms[-1][0] == "vmap":
        return _transpose_batched(cotangents, linear, xs, chain)
    kind, ins, outs = chain.transforms[-1]
    first, second = (ins, outs) if kind == "jvp" else (outs, ins)
    if any(i >= len(first) for i in linear):
        raise NotImplementedError(f"{chain.operator}: is not linear in what it is transposed for")
    given = [k for k, c in enumerate(cotangents) if type(c) is not ad.Zero]
    made: list[Any] = [None] * len(xs)
    if given:
        primals = xs[len(first) :]
        wanted = tuple(first[i] for i in linear)
        from_ = tuple(second[k] for k in given)
        inner = _transform.without_last(chain)
        other = ("vjp", wanted, from_) if kind == "jvp" else ("jvp", from_, wanted)
        found = _bound(inner.then(*other), [*(cotangents[k] for k in given), *primals])
        for i, c in zip(linear, found):
            made[i] = c
    return made


def _transpose_batched(cotangents: Any, linear: Any, xs: Any, chain: Chain) -> Any:
    if not chain.transforms:
        raise NotImplementedError(f"{chain.operator}: is not known to be linear")
    # A batch of transposes is the transpose of a batch, summed for what all examples share.
    (_, batched) = chain.transforms[-1]
    inner = _transform.without_last(chain)
    given = [k for k, c in enumerate(cotangents) if type(c) is not ad.Zero]
    made: list[Any] = [None] * len(xs)
    if not given:
        return made
    values = [None if ad.is_undefined_primal(x) else x for x in xs]

    def one(cs: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        left = iter(rest)
        full = [
            ad.UndefinedPrimal(
                core.ShapedArray(x.aval.shape[1:] if b else x.aval.shape, x.aval.dtype)
            )
            if ad.is_undefined_primal(x)
            else next(left)
            for x, b in zip(xs, batched)
        ]
        all_: list[Any] = [ad.Zero(core.ShapedArray((), jnp.float32))] * len(cotangents)
        for k, c in zip(given, cs):
            all_[k] = c
        found = _transpose(all_, *full, chain=inner)
        return [found[i] for i in linear]

    dims = [0 if b else None for x, b in zip(values, batched) if x is not None]
    found = jax.vmap(one, (0, dims))(
        [cotangents[k] for k in given], [x for x in values if x is not None]
    )
    for i, c in zip(linear, found):
        made[i] = c if batched[i] else c.sum(0)
    return made


def _batch(xs: Any, dims: Any, *, chain: Chain) -> Any:
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(xs, dims)]
    if _transform.takes_batches(chain):
        size = next(x.shape[0] for x, d in zip(moved, dims) if d is not None)
        full = [
            jnp.broadcast_to(x, (size, *x.shape)) if d is None else x for x, d in zip(moved, dims)
        ]
        if len({x.shape for x in full}) == 1:
            primitive = _derived if chain.transforms else _PRIMITIVES[chain.operator]
            found = primitive.bind(*full, chain=chain)
            return found, [0] * len(found)
    made = _bound(chain.then("vmap", tuple(d is not None for d in dims)), moved)
    return made, [0] * len(made)


_derived = _primitive("lamella_call")
_PRIMITIVES: dict[str, Primitive] = {}


# ---- Functions ----


def _function(name: str, overloads: list[Operator]) -> Callable[..., Any]:
    short = name.partition("::")[2]
    usable = [op for op in overloads if not op.writes]

    def one(op: Operator, values: list[Any]) -> Any:
        chain, xs = _transform.split(op, values, _is_tensor, _frozen)
        arrays = _same_axes([jnp.asarray(x) for x in xs])
        made = _PRIMITIVES[op.full_name].bind(*arrays, chain=chain)
        lists = [r.is_list for r in op.returns]
        if not any(lists):
            return made[0] if len(lists) == 1 else tuple(made)
        if sum(lists) > 1:
            raise NotImplementedError(f"{short}: returns more than one list")
        at = lists.index(True)
        size = len(made) - len(lists) + 1
        parts = (*made[:at], list(made[at : at + size]), *made[at + size :])
        return parts[0] if len(parts) == 1 else parts

    def function(*args: Any, **kwargs: Any) -> Any:
        if not usable:
            raise NotImplementedError(
                f"{short}: writes its arguments, which arrays of JAX do not allow"
            )
        problem: TypeError | None = None
        for op in usable:
            try:
                values = op.bound(args, kwargs)
            except TypeError as error:
                problem = problem or error
                continue
            return one(op, values)
        assert problem is not None
        raise problem

    function.__name__ = short
    function.__doc__ = "\n".join(op.schema for op in overloads)
    return function


@functools.cache
def _open() -> None:
    library = _library.native()
    handlers = {
        stage: jax.ffi.pycapsule(getattr(library, f"lamella_bridge_jax_{stage}"))
        for stage in ("instantiate", "execute")
    }
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    for name in ("lamella_bridge_jax_type", "lamella_bridge_jax_type_info"):
        getattr(library, name).restype = ctypes.c_void_p
    jax.ffi.register_ffi_type(
        "lamella_bridge_plan",
        {
            "type_id": capsule(library.lamella_bridge_jax_type(), None, None),
            "type_info": capsule(library.lamella_bridge_jax_type_info(), None, None),
        },
        platform="cpu",
    )
    jax.ffi.register_ffi_target(_TARGET, handlers, platform="cpu", api_version=1)


def load(path: str) -> Namespaces:
    if path not in _loaded:
        _open()
        found = _library.operators(path)
        _library.remember(found)
        for op in found:
            _PRIMITIVES[op.full_name] = _primitive(op.full_name)
        _loaded[path] = _library.namespaces(path, found, _function)
    return _loaded[path]
