"""Derived calls: an operator, or a chain of transforms of it, as a function of a list of tensors.

Note [Chains]
  What a framework's transforms need of an operator is again a function of tensors: its vjp, its
  jvp, itself over a batch, and any of these of each other. A chain names such a function by an
  operator, its arguments with places for tensors, and the transforms, the innermost first:
    ("vjp", ins, outs)   cotangents of `outs`, then the inputs; gives the gradients of `ins`
    ("jvp", ins, outs)   tangents of `ins`, then the inputs; gives the tangents of `outs`
    ("vmap", batched)    the inputs, those that `batched` says with the batch in front; gives
                         results with the batch in front
  Lamella's own transforms compute it, from the operator's derivatives and batching rules. So
  each framework needs one rule each for gradients, tangents and batches, which adds a transform.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lamella
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
        """For parse()."""
        return repr(self)


_NAMED: dict[str, Any] = {"Chain": Chain, "Place": Place, "Named": Named}
_NUMBERS = {"inf": float("inf"), "nan": float("nan"), "infj": complex(0, float("inf"))}


def _read(node: ast.AST) -> Any:
    """A literal of those that text() writes; nothing else is evaluated."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(map(_read, node.elts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_read(node.operand)
    if isinstance(node, ast.BinOp):  # a complex number, whose zeros have signs
        with contextlib.suppress(ValueError):
            return complex(ast.unparse(node).replace(" ", ""))
    if isinstance(node, ast.Name) and node.id in _NUMBERS:
        return _NUMBERS[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        if node.func.id in _NAMED:
            return _NAMED[node.func.id](**{str(k.arg): _read(k.value) for k in node.keywords})
    raise ValueError(f"bridge: expected the text of a chain, got '{ast.unparse(node)}'")


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Chain:
    chain: Chain = _read(ast.parse(text, mode="eval").body)
    return chain


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


def thawed(entry: Named) -> Any:
    """Lamella's object of the name."""
    return lamella.device(entry.name) if entry.kind == "device" else getattr(lamella, entry.name)


def flat(result: Any) -> list[Any]:
    """The results of an operator, lists opened."""
    if result is None:
        return []
    if not isinstance(result, (tuple, list)):
        return [result]
    return [x for part in result for x in (part if isinstance(part, (tuple, list)) else (part,))]


def function(chain: Chain) -> Callable[[Sequence[Any]], list[Any]]:
    """The chain as a function of Lamella's tensors."""
    if not chain.transforms:
        op = named(chain.operator)
        return lambda xs: flat(op.apply(filled(chain.template, xs, thawed)))
    inner = function(chain._replace(transforms=chain.transforms[:-1]))
    kind, *rest = chain.transforms[-1]
    if kind == "vmap":
        (batched,) = rest

        def over_batch(xs: Sequence[Any]) -> list[Any]:
            dims = tuple(0 if b else None for b in batched)
            made = lamella.func.vmap(lambda *x: tuple(inner(x)), dims, randomness="different")(*xs)
            return list(made)

        return over_batch
    ins, outs = rest

    def of_ins(primals: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        def chosen(*given: Any) -> tuple[Any, ...]:
            full = list(primals)
            for i, x in zip(ins, given):
                full[i] = x
            results = inner(full)
            return tuple(results[o] for o in outs)

        return chosen

    def vjp(xs: Sequence[Any]) -> list[Any]:
        primals = xs[len(outs) :]
        _, back = lamella.func.vjp(of_ins(primals), *(primals[i] for i in ins))
        return list(back(tuple(xs[: len(outs)])))

    def jvp(xs: Sequence[Any]) -> list[Any]:
        primals, tangents = xs[len(ins) :], tuple(xs[: len(ins)])
        given = tuple(primals[i] for i in ins)
        try:
            return list(lamella.func.jvp(of_ins(primals), given, tangents)[1])
        except NotImplementedError as error:
            if "forward-mode" not in str(error):
                raise
        # Without a formula for tangents: the vjp is linear in its cotangents, and this its vjp.
        results, back = lamella.func.vjp(of_ins(primals), *given)
        zeros = [lamella.zeros_like(y) for y in results]
        _, again = lamella.func.vjp(lambda *cotangents: tuple(back(cotangents)), *zeros)
        return list(again(tangents))

    return vjp if kind == "vjp" else jvp


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
