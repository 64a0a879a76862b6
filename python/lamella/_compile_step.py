"""Programs of training steps: functions that run a backward or an optimizer themselves."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor, _hlo
from lamella._compile_program import (
    NotCompiled,
    Program,
    copy_of,
    fresh_leaves,
    gradient_facts,
    record,
    recorder_of,
)
from lamella._nest import Nest

__all__ = ["Plain", "Step"]


class Plain(Exception):
    """The traced function neither reads nor changes gradients: an ordinary Program serves it."""


class Step(Program):
    """One program of a whole training step: forward, backward and the optimizer's update. The
    gradients before it are inputs and those after it results. Results do not require gradients,
    since their backward has run."""

    name, is_step = "step", True

    def _record(self, leaves: list[Tensor]) -> None:
        first = [at for at, _ in gradient_facts(leaves)]
        self._own = sorted(set(first))
        place = {leaf: k for k, leaf in enumerate(self._own)}
        at = [place[i] for i in first]
        own = [leaves[i] for i in self._own]
        wants = [leaf.requires_grad for leaf in own]
        hooked = [_hlo._has_hooks(leaf) for leaf in own]
        grads = [leaf.grad if leaf.is_leaf else None for leaf in own]
        self._graded = [k for k, grad in enumerate(grads) if grad is not None]
        values = [rate.get() for rate in self._found.rates]
        rates = [lamella.scalar_tensor(rate, dtype=lamella.float64) for rate in values]
        count = len(own)
        given = [*own, *rates, *(grad for grad in grads if grad is not None)]
        copies = [copy_of(t) for t in given]
        after: list[str] = []
        self._is_alive = False

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

        labels = self._names()
        names = [labels[i] for i in self._own]
        names += [rate.name for rate in self._found.rates]
        names += [f"gradient_of_{names[k]}" for k in self._graded]
        raw, results = record(recorder_of(copies, names), alone, copies)
        self._look_at(raw, results, copies)
        used = set(raw.used(""))
        inputs = raw.inputs()
        trained = [i for k, i in enumerate(inputs[:count]) if wants[k] and i in raw.mutated()]
        looked_at = any(i in used for i in inputs[count + len(rates) :])
        if self._is_alive:
            if not trained and not looked_at and all(change == "same" for change in after):
                raise Plain
            raise NotCompiled("it returns results with gradients, and changes gradients itself")
        if any(leaf.requires_grad and not leaf.is_leaf for leaf in own):
            raise NotCompiled("it takes a tensor with a history, and changes gradients itself")
        self.results = Nest(self.results.form[-1][0], [])
        self._set = [k for k in range(count) if after[k] == "new"]
        self._cleared = [k for k in range(count) if after[k] == "none"]
        self._compile_forward(raw)


def _is_alive(tensor: Tensor, into: list[Tensor]) -> bool:
    """Whether a backward from a tensor can still run, so that its graph was not freed."""
    try:
        ones = lamella.ones_like(tensor.detach())
        lamella.autograd.grad(tensor, into, ones, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return False
    return True
