"""gradcheck and gradgradcheck: compare gradients with finite differences.

Note [Complex numbers are pairs]
  A complex tensor is treated as its real and imaginary parts, so that every function maps real
  coordinates to real coordinates and has one real Jacobian J. Backward computes J^T v and forward
  mode J t for this J, with v and t as complex numbers, so complex tensors need no special cases.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.autograd import _gradcheck_parts as parts

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


# The batch size of the checks under vmap.
_BATCH = 3


class GradcheckError(RuntimeError):
    """Raised if a check fails."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks that the derivatives of func agree with central differences of step `eps`.

    inputs: a tensor or a tuple; derivatives with respect to those that require gradients are
    checked, element by element, or in fast mode in one random direction. They agree if
    |analytical - numerical| <= atol + rtol |numerical|. Two backward passes may differ by
    nondet_tol. check_undefined_grad: backward must map absent gradients to absent or zero ones.
    check_batched_grad: one backward under vmap must give the same as a backward for each gradient;
    check_batched_forward_grad: the same for forward mode. For sparse inputs, derivatives with
    respect to their values are checked.
    Returns True; otherwise raises GradcheckError, or returns False without raise_exception.
    """
    if not (check_backward_ad or check_forward_ad):
        raise ValueError("gradcheck: expected 'check_backward_ad' or 'check_forward_ad' to be True")
    func, inputs = parts.of_values(func, parts.tuple_of(inputs))
    try:
        _Check(func, inputs, eps, atol, rtol, fast_mode).run(
            backward=check_backward_ad,
            forward=check_forward_ad,
            undefined=check_undefined_grad,
            dtypes=check_grad_dtypes,
            nondet_tol=nondet_tol,
            batched=check_batched_grad,
            batched_forward=check_batched_forward_grad,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck() of the gradients of func as functions of the inputs and of grad_outputs.

    grad_outputs: gradients of the outputs, by default random ones.
    """
    inputs = parts.tuple_of(inputs)
    if grad_outputs is None:
        outputs = parts.differentiable(func(*inputs))
        given = tuple(parts.random_gradient(y, gen_non_contig_grad_outputs) for y in outputs)
    else:
        given = parts.tuple_of(grad_outputs)
    count = len(given)

    def gradients(*args: Any) -> Any:
        points, grads = args[: len(args) - count], args[len(args) - count :]
        points = tuple(
            p.requires_grad_() if isinstance(p, Tensor) and original.requires_grad else p
            for p, original in zip(points, inputs)
        )
        outputs = parts.differentiable(func(*points))
        wanted = [p for p in points if isinstance(p, Tensor) and p.requires_grad]
        found = lamella.autograd.grad(outputs, wanted, grads, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + given,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


class _Check:
    """The checks of one function at one point."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        eps: float,
        atol: float,
        rtol: float,
        fast: bool,
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.fast = fast
        self.kinds: dict[int, str] = {}  # shapes and dtypes of the outputs that are compared
        self.generator = lamella.Generator().manual_seed(0)  # does not advance the default one
        self.places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def run(
        self,
        backward: bool,
        forward: bool,
        undefined: bool,
        dtypes: bool,
        nondet_tol: float,
        batched: bool,
        batched_forward: bool,
    ) -> None:
        self._check_inputs()
        result = self.func(*self.inputs)
        everything = [y for y in parts.tuple_of(result) if parts.is_continuous(y)]
        outputs = list(parts.differentiable(result))
        if not outputs:
            self._expect_constant(everything)
            return
        # Only outputs that require gradients are compared.
        chosen = [i for i, y in enumerate(parts.tuple_of(result)) if any(y is o for o in outputs)]
        self.kinds = {i: parts.kind(y) for i, y in zip(chosen, outputs)}
        if self.fast:
            directions = parts.directions([self.inputs[i] for i in self.places], outputs)
            self._fast(chosen, outputs, directions, backward, forward)
        else:
            numerical = self._numerical(chosen, [parts.count(y) for y in outputs])
            if backward:
                self._slow_backward(outputs, numerical)
            if forward:
                self._slow_forward(chosen, outputs, numerical)
        if backward:
            self._check_determinism(outputs, nondet_tol)
            self._check_gradients_fit(outputs, dtypes)
            if undefined:
                self._check_undefined()
            if batched:
                self._check_batched(outputs)
        if forward and undefined:
            self._check_absent_tangents(chosen)
        if forward and batched_forward:
            self._check_batched_forward(chosen)

    # ---- Inputs and outputs

    def _check_inputs(self) -> None:
        if not self.places:
            raise ValueError(
                "gradcheck: expected at least one of 'inputs' to be a tensor that requires "
                "gradients"
            )
        for place in self.places:
            x = self.inputs[place]
            if x.dtype not in (lamella.float64, lamella.complex128):
                warnings.warn(
                    f"gradcheck: input {place} has dtype {x.dtype}; differences are only precise "
                    "enough in float64 and complex128",
                    stacklevel=4,
                )
            if any(step == 0 and size > 1 for size, step in zip(x.shape, x.stride())):
                raise RuntimeError(
                    f"gradcheck: expected elements of input {place} not to share memory, got "
                    f"stride 0; call contiguous() on it"
                )

    def _expect_constant(self, outputs: list[Tensor]) -> None:
        """Checks that outputs which require no gradients do not depend on the inputs."""
        if not outputs:
            return
        everything = parts.tuple_of(self.func(*self.inputs))
        chosen = [i for i, y in enumerate(everything) if parts.is_continuous(y)]
        for rows, place in zip(
            self._numerical(chosen, [parts.count(everything[i]) for i in chosen]), self.places
        ):
            for output, jacobian in enumerate(rows):
                if jacobian.numel() and float(jacobian.abs().max()) > self.atol:
                    raise GradcheckError(
                        f"gradcheck: expected output {output} not to depend on input {place}, as "
                        f"it requires no gradients, got the numerical Jacobian\n{jacobian}"
                    )

    # ---- Finite differences

    def _evaluate(self, chosen: list[int], copies: tuple[Any, ...]) -> list[Tensor]:
        outputs = parts.with_kinds(parts.tuple_of(self.func(*copies)), self.kinds)
        return [parts.coordinates(outputs[i]).clone() for i in chosen]

    def _copies(self) -> tuple[tuple[Any, ...], list[Tensor]]:
        """Copies of the inputs, one for each distinct tensor, and those of the checked inputs."""
        made: dict[int, Tensor] = {}
        copies = []
        for x in self.inputs:
            if isinstance(x, Tensor):
                if id(x) not in made:
                    made[id(x)] = parts.clone(x).requires_grad_(x.requires_grad)
                copies.append(made[id(x)])
            else:
                copies.append(x)
        return tuple(copies), [copies[i] for i in self.places]

    def _difference(self, chosen: list[int], which: int, moves: Any) -> list[Tensor]:
        """(f(x + move) - f(x - move)) / (2 eps); `moves` changes the memory of input `which`.

        The input itself is changed and restored, since func may also reach it without an argument;
        func gets copies, since it may write its arguments.
        """
        ends = []
        # `data` has its own version counter, so the graph does not see these writes.
        place = self.inputs[self.places[which]].data
        memory = lamella.view_as_real(place) if place.is_complex() else place
        kept = memory.clone()
        for sign in (1, -1):
            try:
                moves(memory, sign * self.eps)
                ends.append(self._evaluate(chosen, self._copies()[0]))
            finally:
                memory.copy_(kept)
        return [(after - before) / (2 * self.eps) for after, before in zip(*ends)]

    def _numerical(self, chosen: list[int], counts: list[int]) -> list[list[Tensor]]:
        """The Jacobian [output elements, input elements] for each checked input and each output."""
        found = []
        for which, place in enumerate(self.places):
            x = self.inputs[place]
            sizes = (*x.shape, 2) if x.is_complex() else tuple(x.shape)
            columns = []
            for index in itertools.product(*(range(size) for size in sizes)):

                def move(memory: Tensor, step: float, index: Any = index) -> None:
                    memory[index] += step

                columns.append(self._difference(chosen, which, move))
            found.append(
                [
                    lamella.stack([column[i] for column in columns], 1)
                    if columns
                    else lamella.zeros((count, 0), dtype=lamella.float64)
                    for i, count in enumerate(counts)
                ]
            )
        return found

    # ---- Derivatives

    def _vjp(self, output: Tensor, gradient: Tensor) -> list[Tensor]:
        wanted = [self.inputs[i] for i in self.places]
        found = lamella.autograd.grad(
            [output], wanted, [gradient], retain_graph=True, allow_unused=True
        )
        rows = []
        for place, x, grad in zip(self.places, wanted, found):
            if grad is None:
                rows.append(lamella.zeros(parts.count(x), dtype=lamella.float64))
                continue
            if grad.shape != x.shape:
                raise GradcheckError(
                    f"gradcheck: expected the gradient of input {place} to have the shape "
                    f"{list(x.shape)}, got {list(grad.shape)}"
                )
            if grad.is_complex() != x.is_complex():
                raise GradcheckError(
                    f"gradcheck: expected the gradient of input {place} to have dtype {x.dtype}, "
                    f"got {grad.dtype}"
                )
            rows.append(parts.coordinates(grad).clone())
        return rows

    def _jacobians(self, output: Tensor) -> list[Tensor]:
        rows = [self._vjp(output, parts.basis(output, k)) for k in range(parts.count(output))]
        found = []
        for i, place in enumerate(self.places):
            if rows:
                found.append(lamella.stack([row[i] for row in rows]))
            else:
                empty = (0, parts.count(self.inputs[place]))
                found.append(lamella.zeros(empty, dtype=lamella.float64))
        return found

    def _slow_backward(self, outputs: list[Tensor], numerical: list[list[Tensor]]) -> None:
        for i, output in enumerate(outputs):
            for j, jacobian in enumerate(self._jacobians(output)):
                self._compare("Jacobian", i, self.places[j], jacobian, numerical[j][i])

    def _jvp(self, chosen: list[int], which: int, tangent: Tensor) -> list[Tensor]:
        """The tangents of the chosen outputs for a tangent of one input."""
        from lamella.autograd import forward_ad

        copies, moved = self._copies()
        target = moved[which]
        found = []
        with forward_ad.dual_level():
            # All checked inputs have tangents, and none requires gradients.
            duals = {
                id(x): forward_ad.make_dual(
                    x.detach(), tangent if x is target else lamella.zeros_like(x.detach())
                )
                for x in moved
            }
            results = parts.tuple_of(self.func(*(duals.get(id(c), c) for c in copies)))
            for i in chosen:
                primal, part = forward_ad.unpack_dual(results[i])
                if part is None:
                    found.append(lamella.zeros(parts.count(primal), dtype=lamella.float64))
                    continue
                if part.shape != primal.shape or part.dtype != primal.dtype:
                    raise GradcheckError(
                        f"gradcheck: expected the tangent of output {i} to have the shape "
                        f"{list(primal.shape)} and dtype {primal.dtype}, got {list(part.shape)} "
                        f"and {part.dtype}"
                    )
                found.append(parts.coordinates(part).clone())
        return found

    def _slow_forward(
        self, chosen: list[int], outputs: list[Tensor], numerical: list[list[Tensor]]
    ) -> None:
        for which, place in enumerate(self.places):
            x = self.inputs[place]
            columns = [self._jvp(chosen, which, parts.basis(x, k)) for k in range(parts.count(x))]
            for i in range(len(outputs)):
                if columns:
                    jacobian = lamella.stack([column[i] for column in columns], 1)
                    self._compare(
                        "Jacobian by forward mode", i, place, jacobian, numerical[which][i]
                    )

    def _fast(
        self,
        chosen: list[int],
        outputs: list[Tensor],
        directions: Any,
        backward: bool,
        forward: bool,
    ) -> None:
        """Compares v^T J u for random u and v instead of all of J."""
        along, across = directions
        for which, place in enumerate(self.places):
            x, u = self.inputs[place], along[which]
            sizes = (*x.shape, 2) if x.is_complex() else tuple(x.shape)

            def move(memory: Tensor, step: float, u: Tensor = u, sizes: Any = sizes) -> None:
                memory.add_((u * step).reshape(sizes).to(memory.dtype))

            differences = self._difference(chosen, which, move)
            tangents = []
            if forward:
                tangents = self._jvp(chosen, which, parts.from_coordinates(u, x))
            for i, (output, v) in enumerate(zip(outputs, across)):
                numerical = (differences[i] * v).sum()
                # Scales atol to the sum of the tolerances of all elements, weighted by u and v.
                scale = float(u.sum()) * float(v.sum())
                if backward:
                    row = self._vjp(output, parts.from_coordinates(v, output))[which]
                    what = "product v^T J u with the Jacobian"
                    self._compare(what, i, place, (row * u).sum(), numerical, scale)
                if forward:
                    what = "product v^T J u with the Jacobian by forward mode"
                    self._compare(what, i, place, (tangents[i] * v).sum(), numerical, scale)

    def _compare(
        self,
        what: str,
        output: int,
        place: int,
        analytical: Tensor,
        numerical: Tensor,
        scale: float = 1.0,
    ) -> None:
        difference = (analytical - numerical).abs()
        # Written as `<=` so that NaN counts as different.
        close = difference <= self.atol * scale + self.rtol * numerical.abs()
        if bool(close.all()):
            return
        wrong = [tuple(index) for index in (~close).nonzero().tolist()]
        first = wrong[0]
        at = f" at {list(first)} ([output element, input element])" if first else ""
        more = f", and at {len(wrong) - 1} more places" if len(wrong) > 1 else ""
        text = (
            f"gradcheck: expected the {what} of output {output} with respect to input {place} to "
            f"agree with finite differences, got {float(analytical[first])} and "
            f"{float(numerical[first])}{at}{more}"
        )
        if first:
            text += f"\nanalytical:\n{analytical}\nnumerical:\n{numerical}"
        raise GradcheckError(text)

    def _random(self, like: Tensor) -> Tensor:
        """A random tensor with the shape and dtype of `like`."""
        numbers = lamella.rand(parts.count(like), dtype=lamella.float64, generator=self.generator)
        return parts.from_coordinates(numbers, like)

    # ---- Other checks of backward

    def _check_determinism(self, outputs: list[Tensor], tolerance: float) -> None:
        for i, output in enumerate(outputs):
            gradient = self._random(output)
            first, second = self._vjp(output, gradient), self._vjp(output, gradient)
            for place, one, other in zip(self.places, first, second):
                same = bool((one == other).all()) or bool(((one - other).abs() <= tolerance).all())
                if not same:
                    raise GradcheckError(
                        f"gradcheck: expected two backward passes from output {i} to give the same "
                        f"gradient of input {place} within nondet_tol={tolerance}, got a "
                        f"difference of {float((one - other).abs().max())}"
                    )

    def _check_gradients_fit(self, outputs: list[Tensor], dtypes: bool) -> None:
        wanted = [self.inputs[i] for i in self.places]
        found = lamella.autograd.grad(
            outputs,
            wanted,
            [self._random(y) for y in outputs],
            retain_graph=True,
            allow_unused=True,
        )
        for place, x, grad in zip(self.places, wanted, found):
            if grad is None:
                continue
            if grad.device != x.device:
                raise GradcheckError(
                    f"gradcheck: expected the gradient of input {place} to be on {x.device}, got "
                    f"{grad.device}"
                )
            if dtypes and grad.dtype != x.dtype:
                raise GradcheckError(
                    f"gradcheck: expected the gradient of input {place} to have dtype {x.dtype}, "
                    f"got {grad.dtype}"
                )

    def _check_batched(self, outputs: list[Tensor]) -> None:
        wanted = [self.inputs[i] for i in self.places]

        def gradients(output: Tensor, given: Tensor, together: bool) -> Any:
            return lamella.autograd.grad(
                [output],
                wanted,
                [given],
                retain_graph=True,
                is_grads_batched=together,
                materialize_grads=True,
            )

        for i, output in enumerate(outputs):
            rows = [parts.random_gradient(output, False).detach() for _ in range(_BATCH)]
            alone = zip(*(gradients(output, row, False) for row in rows))
            what = f"gradient of output {i} with respect to input"
            try:
                found = gradients(output, lamella.stack(rows), True)
            except RuntimeError as error:
                raise GradcheckError(f"gradcheck: under vmap the {what}s fail: {error}") from error
            for place, batch, each in zip(self.places, found, alone):
                self._compare_batched(f"{what} {place}", batch, each)

    def _check_batched_forward(self, chosen: list[int]) -> None:
        for which, place in enumerate(self.places):
            x = self.inputs[place]
            rows = [lamella.randn_like(x.detach()) for _ in range(_BATCH)]
            what = f"tangents by one of input {place}"
            alone = zip(*(self._jvp(chosen, which, row) for row in rows))
            try:
                found = lamella.vmap(lambda row, which=which: tuple(self._jvp(chosen, which, row)))(
                    lamella.stack(rows)
                )
            except RuntimeError as error:
                raise GradcheckError(f"gradcheck: under vmap the {what} fail: {error}") from error
            for batch, each in zip(found, alone):
                self._compare_batched(what, batch, each)

    def _compare_batched(self, what: str, batch: Tensor, each: Any) -> None:
        wanted = lamella.stack(list(each))
        if not lamella.allclose(batch, wanted, self.rtol, self.atol):
            raise GradcheckError(
                f"gradcheck: expected the {what} to be the same under vmap, got\n{batch}\n"
                f"and for each alone\n{wanted}"
            )

    def _check_undefined(self) -> None:
        """Runs backward with absent gradients for all outputs, and for each output alone."""
        outputs = list(parts.differentiable(self.func(*self.inputs)))
        wanted = [self.inputs[i] for i in self.places]
        undefined = parts.make_undefined()
        cases = [list(range(len(outputs)))]
        if len(outputs) > 1:
            cases += [[i] for i in range(len(outputs))]
        for case in cases:
            through = list(outputs)
            made = undefined.apply(*(outputs[i] for i in case))
            for i, y in zip(case, made):
                through[i] = y
            names = ", ".join(str(i) for i in case)
            try:
                found = lamella.autograd.grad(
                    through,
                    wanted,
                    [lamella.zeros_like(y) for y in through],
                    retain_graph=True,
                    allow_unused=True,
                )
            except RuntimeError as error:
                raise GradcheckError(
                    "gradcheck: expected backward to allow absent gradients (output "
                    f"{names}), got: {error}"
                ) from error
            for place, grad in zip(self.places, found):
                if grad is not None and not bool((grad == 0).all()):
                    raise GradcheckError(
                        f"gradcheck: expected the gradient of input {place} to be absent or zero "
                        f"where the gradients of outputs are (absent: output {names}), got\n{grad}"
                    )

    def _check_absent_tangents(self, chosen: list[int]) -> None:
        """Checks that a tangent of one input gives the same result if the other inputs have no
        tangent as if theirs are zero."""
        from lamella.autograd import forward_ad

        if len(self.places) < 2:
            return
        for which, place in enumerate(self.places):
            x = self.inputs[place]
            u = self._random(x)
            without = self._jvp(chosen, which, u)
            copies, moved = self._copies()
            with forward_ad.dual_level():
                duals = {
                    id(t): forward_ad.make_dual(
                        t.detach(), u if i == which else lamella.zeros_like(t)
                    )
                    for i, t in enumerate(moved)
                }
                if len(duals) < len(moved):
                    return
                results = parts.tuple_of(self.func(*(duals.get(id(c), c) for c in copies)))
                for i, expected in zip(chosen, without):
                    part = forward_ad.unpack_dual(results[i]).tangent
                    got = expected * 0 if part is None else parts.coordinates(part)
                    if not bool(((got - expected).abs() <= self.atol).all()):
                        raise GradcheckError(
                            f"gradcheck: expected the tangent of output {i} to be the same whether "
                            f"inputs other than {place} have no tangents or zero ones, got\n"
                            f"{expected}\nand\n{got}"
                        )
