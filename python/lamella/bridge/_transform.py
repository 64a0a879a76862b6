"""Derived calls: an operator, or a chain of transforms of it, as a function of a list of tensors.

Note [Chains]
  What a framework's transforms need of an operator is again a function of tensors: its vjp, its
  jvp, itself over a batch, and any of these of each other. A chain names such a function by an
  operator, its arguments with places for tensors, and the transforms, the innermost first:
    ("vjp", ins, outs)   cotangents of `outs`, then the inputs; gives the gradients of `ins`
    ("jvp", ins, outs)   tangents of `ins`, then the inputs; gives the tangents of `outs`
    ("vmap", batched)    the inputs, those that `batched` says with the batch in front; gives
                         results with the batch in front
  liblamella_bridge.so computes it (lamella/bridge/chain.cpp), from the operator's derivatives and
  batching rules. So each framework needs one rule each for gradients, tangents and batches, which
  adds a transform.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lamella.bridge import _library
from lamella.bridge._library import Operator, named

Transform = tuple[Any, ...]


class Place(NamedTuple):
    """The tensors of one argument by their numbers; -1: the entry of a list is absent."""

    numbers: tuple[int, ...]
    is_list: bool


class Named(NamedTuple):
    """A dtype, device, layout or memory format, by its name."""

    kind: str
    name: str


class Chain(NamedTuple):
    operator: str
    template: tuple[Any, ...]
    transforms: tuple[Transform, ...]

    def then(self, *transform: Any) -> Chain:
        return self._replace(transforms=(*self.transforms, transform))

    def text(self) -> str:
        """For parse(), and for liblamella_bridge.so."""
        template = list(map(_written, self.template))
        return json.dumps([self.operator, template, self.transforms], ensure_ascii=False)


def _written(entry: Any) -> Any:
    if isinstance(entry, Place):
        return {"l" if entry.is_list else "t": entry.numbers}
    if isinstance(entry, Named):
        return {"n": entry.name, "kind": entry.kind}
    if isinstance(entry, complex):
        return {"c": (_written(entry.real), _written(entry.imag))}
    if isinstance(entry, float) and not math.isfinite(entry):
        return {"f": str(entry)}
    if isinstance(entry, int) and not -(1 << 63) <= entry < 1 << 63:
        raise ValueError(f"bridge: expected a number of 64 bits, got {entry}")
    return list(map(_written, entry)) if isinstance(entry, tuple) else entry


def _read(entry: Any) -> Any:
    if isinstance(entry, list):
        return tuple(map(_read, entry))
    if not isinstance(entry, dict):
        return entry
    if "c" in entry:
        return complex(*map(_read, entry["c"]))
    if "f" in entry:
        return float(entry["f"])
    if "n" in entry:
        return Named(entry["kind"], entry["n"])
    return Place(tuple(entry["l"]), True) if "l" in entry else Place(tuple(entry["t"]), False)


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Chain:
    try:
        operator, template, transforms = json.loads(text)
        return Chain(str(operator), _read(template), _read(transforms))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"bridge: expected the text of a chain, got {text!r}") from error


class Meta(NamedTuple):
    """A result without memory."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: str
    base: int  # the number of the tensor that it is a view of, -1: none


def metas(chain: Chain, tensors: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The returns of an operator by its Meta kernel: Meta, None, a number, a text, or a list of
    Meta. tensors: (sizes, strides or None, dtype's name) of each."""
    status = ctypes.c_int32()
    text = _library.native().lamella_bridge_meta(
        chain.text().encode(), json.dumps(tensors).encode(), ctypes.byref(status)
    )
    _library.check(status.value)

    def read(one: Any) -> Any:
        if not isinstance(one, list):
            return one
        if one and isinstance(one[0], list) and len(one) == 5 and isinstance(one[3], str):
            return Meta(tuple(one[0]), tuple(one[1]), *one[2:])
        return list(map(read, one))

    return list(map(read, json.loads(text)))


def split(
    op: Operator, values: Sequence[Any], is_tensor: Callable[[Any], bool],
    static: Callable[[Any, str], Any],
) -> tuple[Chain, list[Any]]:  # fmt: skip
    """A call as a chain without transforms, and its tensors. static: see frozen()."""
    tensors: list[Any] = []
    template: list[Any] = []

    def number(x: Any) -> int:
        if x is None:
            return -1
        tensors.append(x)
        return len(tensors) - 1

    for a, v in zip(op.arguments, values):
        if a.is_tensor and v is not None:
            items = list(v) if a.is_list else [v]
            for x in items:
                if x is not None and not is_tensor(x):
                    short = op.name.partition("::")[2]
                    raise TypeError(
                        f"{short}: expected '{a.name}' to be a tensor, got {type(x).__name__}"
                        if not a.is_list
                        else f"{short}: expected '{a.name}' to be tensors, got "
                        f"{type(x).__name__}"
                    )
            template.append(Place(tuple(map(number, items)), a.is_list))
        else:
            template.append(static(v, a.type))
    return Chain(op.full_name, tuple(template), ()), tensors


def filled(
    template: Sequence[Any], tensors: Sequence[Any], thaw: Callable[[Named], Any]
) -> list[Any]:
    """The values of the arguments: the reverse of split()."""
    values: list[Any] = []
    for entry in template:
        if isinstance(entry, Place):
            found = [tensors[n] if n >= 0 else None for n in entry.numbers]
            values.append(found if entry.is_list else found[0])
        elif isinstance(entry, Named):
            values.append(thaw(entry))
        else:
            values.append(list(entry) if isinstance(entry, tuple) else entry)
    return values


def flat(result: Any) -> list[Any]:
    """The results of an operator, lists opened."""
    if result is None:
        return []
    if not isinstance(result, (tuple, list)):
        return [result]
    return [x for part in result for x in (part if isinstance(part, (tuple, list)) else (part,))]


def takes_batches(chain: Chain) -> bool:
    """Whether the chain gives a batch of results for a batch of its inputs, all of one shape."""
    pointwise = named(chain.operator).batching == "pointwise"
    return pointwise and all(kind != "vmap" for kind, *_ in chain.transforms)


def inputs_of(chain: Chain, xs: Sequence[Any]) -> Sequence[Any]:
    """Of the inputs of a vjp or jvp, those of the function that it transforms."""
    kind, ins, outs = chain.transforms[-1]
    return xs[len(outs if kind == "vjp" else ins) :]


def without_last(chain: Chain) -> Chain:
    return chain._replace(transforms=chain.transforms[:-1])


def counts(chain: Chain, result: Any) -> tuple[int, ...]:
    """How many results each return of a chain's operator has."""
    if chain.transforms or result is None:
        return ()
    if not isinstance(result, (tuple, list)):
        return (1,)
    parts = [result] if len(named(chain.operator).returns) == 1 else result
    return tuple(len(part) if isinstance(part, (tuple, list)) else 1 for part in parts)


def differentiable_results(chain: Chain, each: Sequence[int]) -> list[bool]:
    """Of an operator's results, opened as by flat(): which may have gradients. each: counts()."""
    op = named(chain.operator)
    return [op.is_differentiable(r) for r, count in enumerate(each) for _ in range(count)]


def differentiable_inputs(chain: Chain) -> set[int] | None:
    """The numbers of the tensors that the operator's derivative is for; None: all."""
    op = named(chain.operator)
    if op.slots is None:
        return None
    return {
        n
        for slot in op.slots
        if isinstance(chain.template[slot], Place)
        for n in chain.template[slot].numbers
    }
