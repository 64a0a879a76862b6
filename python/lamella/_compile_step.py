"""Programs of training steps: functions that run a backward or an optimizer themselves."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor, _hlo
from lamella._compile_program import (
    NotCompiled,
    Program,
    apart,
    copy_of,
    fresh_leaves,
    record,
    recorder_of,
    view_of,
    write,
)
from lamella._nest import Nest

__all__ = ["Plain", "Step", "gradient_facts"]


class Plain(Exception):
    """The traced function neither reads nor changes gradients: an ordinary Program serves it."""


def gradient_facts(leaves: list[Tensor]) -> list[Any]:
    """What a step is specialized on besides the facts of its tensors: for each tensor the position
    of its first occurrence, and the facts of its gradient, None if it has none."""
    first: dict[int, int] = {}
    facts = []
    for i, leaf in enumerate(leaves):
        grad = leaf.grad if leaf.is_leaf else None
        known = None if grad is None else _hlo._tensor_facts(grad)
        facts.append((first.setdefault(id(leaf), i), known))
    return facts


class Step(Program):
    """One program of a whole training step: forward, backward and the optimizer's update. The
    gradients before it are inputs and those after it results. Results do not require gradients,
    since their backward has run."""

    name = "step"

    def _record(self, leaves: list[Tensor]) -> None:
        first = [at for at, _ in gradient_facts(leaves)]
        # Inputs: each distinct tensor once, then the learning rates, then the gradients.
        self._own = sorted(set(first))
        place = {leaf: k for k, leaf in enumerate(self._own)}
        at = [place[i] for i in first]
        own = [leaves[i] for i in self._own]
        wants = [leaf.requires_grad for leaf in own]
        hooked = [_hlo._has_hooks(leaf) for leaf in own]
        grads = [leaf.grad if leaf.is_leaf else None for leaf in own]
        self._graded = [k for k, grad in enumerate(grads) if grad is not None]
        count, rates = len(own), self._rates()
        given = [*own, *rates, *(grads[k] for k in self._graded)]
        copies = [copy_of(t) for t in given]
        after: list[str] = []

        def alone(*tensors: Tensor) -> Any:
            own = fresh_leaves(tensors[:count], wants, hooked, [True])
            rates_here = tensors[count : count + len(rates)]
            before = dict(zip(self._graded, tensors[count + len(rates) :]))
            for k, grad in before.items():
                own[k].grad = grad
            returned = self._call(*(own[k] for k in at), *rates_here)
            fresh = []
            for k, leaf in enumerate(own):
                if leaf.grad is None:
                    after.append("none" if k in before else "same")
                elif leaf.grad is before.get(k):
                    after.append("same")
                else:
                    after.append("new")
                    fresh.append(leaf.grad)
            into = [leaf for leaf in own if leaf.requires_grad]
            for tensor in Nest.pack(returned).tensors:
                self._is_alive |= tensor.requires_grad and _is_alive(tensor, into)
            return returned, fresh

        self._is_alive = False
        labels = self._names()
        names = [labels[i] for i in self._own]
        names += [rate.name for rate in self._found.rates]
        names += [f"gradient_of_{names[k]}" for k in self._graded]
        raw, results = record(recorder_of(copies, names), alone, copies)
        self._look_at(raw, results, copies)
        used = {i for node in raw.nodes() for i in node["uses"]}
        inputs = raw.inputs()
        trained = [i for k, i in enumerate(inputs[:count]) if wants[k] and i in raw.mutated()]
        looked_at = any(i in used for i in inputs[count + len(rates) :])
        if self._is_alive:
            if not trained and not looked_at and all(change == "same" for change in after):
                raise Plain
            raise NotCompiled("it returns results with gradients, and changes gradients itself")
        if any(leaf.requires_grad and not leaf.is_leaf for leaf in own):
            raise NotCompiled("it takes a tensor with a history, and changes gradients itself")
        self._returned = Nest(self._results.form[-1][0], [])
        self._changes = [(k, after[k] == "new") for k in range(count) if after[k] != "same"]
        self._compile_forward(raw)
        self._quick: Any = None
        if all(alias is None for alias in self._aliases):
            new = [k for k, is_new in self._changes if is_new]
            self._quick = _hlo._step(
                self.forward,
                first,
                self._own,
                self._graded,
                self._written,
                new,
                [k for k, is_new in self._changes if not is_new],
                len(self._aliases) - len(new),
                [leaf.grad if leaf.is_leaf else None for leaf in leaves],
            )

    def _rates(self) -> list[Tensor]:
        rates = [rate.get() for rate in self._found.rates]
        return [lamella.scalar_tensor(rate, dtype=lamella.float64) for rate in rates]

    def plain(self) -> tuple[Any, Any]:
        return None, None

    def run_if_for(self, leaves: list[Tensor]) -> Any:
        """Runs the step without Python; NotImplemented if the gradients differ from those that the
        step was made for. None, with nothing done, if the caller must compare gradient_facts() and
        use run() instead."""
        if self._quick is None:
            return None
        made = self._quick(leaves, self._rates(), self._outside)
        return self._returned.unpack(made) if type(made) is list else made

    def run(self, leaves: list[Tensor]) -> Any:
        own = [leaves[i] for i in self._own]
        given = [*own, *self._rates(), *(own[k].grad for k in self._graded), *self._outside]
        if self._written and not apart(given, self._written):
            raise NotCompiled("it writes an argument that shares memory with another")
        with lamella.no_grad():
            made = self.forward(*given)
            if self._written:
                write([given[i] for i in self._written], list(made[len(self._fresh) :]))
            fresh = iter(made)
            results = [
                next(fresh) if alias is None else view_of(given[alias[0]], alias)
                for alias in self._aliases
            ]
            # A new gradient must not share memory with a result or another gradient.
            first = len(results) - sum(is_new for _, is_new in self._changes)
            memory = {given_one.data_ptr() for given_one in results[:first]}
            for i in range(first, len(results)):
                if self._aliases[i] is not None or results[i].data_ptr() in memory:
                    results[i] = results[i].clone()
                memory.add(results[i].data_ptr())
        grads = iter(results[first:])
        for k, is_new in self._changes:
            own[k].grad = next(grads) if is_new else None
        return self._returned.unpack(results[:first])


def _is_alive(tensor: Tensor, into: list[Tensor]) -> bool:
    """Whether a backward from a tensor can still run, so that its graph was not freed."""
    try:
        ones = lamella.ones_like(tensor.detach())
        lamella.autograd.grad(tensor, into, ones, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return False
    return True
