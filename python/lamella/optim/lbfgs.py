"""L-BFGS: steps along an inverse Hessian that is estimated from the last gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.optim._per_parameter import options
from lamella.optim.optimizer import Optimizer, check_not_negative

__all__ = ["LBFGS"]

# Evaluates loss and gradient at a distance along the direction.
_Evaluate = Callable[[Any], "tuple[float, Tensor]"]


class LBFGS(Optimizer):
    """Nocedal and Wright, Numerical Optimization, 2006, algorithms 7.4 and 7.5; line_search_fn
    "strong_wolfe": algorithms 3.5 and 3.6 choose the distance, else it is lr.

    One step makes up to max_iter iterations with up to max_eval calls of the closure (None:
    5 / 4 max_iter), and ends where the gradient is within tolerance_grad or parameters and loss
    change by less than tolerance_change. There is one group of parameters.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative("LBFGS", lr=lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(
                "LBFGS: expected 'line_search_fn' to be strong_wolfe or None, got "
                f"'{line_search_fn}'"
            )
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, options(locals()))
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS: expected one parameter group, got {len(self.param_groups)}")

    def _real_params(self) -> list[Tensor]:
        params = self.param_groups[0]["params"]
        return [lamella.view_as_real(p) if p.is_complex() else p for p in params]

    def _gradient(self) -> Tensor:
        """The gradients of all parameters as one vector."""
        parts = []
        for param in self.param_groups[0]["params"]:
            grad = lamella.zeros_like(param) if param.grad is None else param.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            grad = lamella.view_as_real(grad) if grad.is_complex() else grad
            parts.append(grad.reshape(-1))
        return lamella.cat(parts)

    def _go(self, distance: Any, direction: Tensor) -> None:
        at = 0
        for param in self._real_params():
            part = direction[at : at + param.numel()].view(param.shape)
            param.add_(part, alpha=distance)
            at += param.numel()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes up to max_iter iterations. closure: computes the loss and the gradients again; the
        loss of its first call is returned."""
        if closure is None:
            raise TypeError("LBFGS: expected 'closure' to be a function, got None")
        evaluate = lamella.enable_grad()(closure)
        with lamella.no_grad():
            return self._iterate(evaluate)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = float(group["lr"])
        tolerance = group["tolerance_change"]
        own = self.state[group["params"][0]]
        own.setdefault("func_evals", 0)
        own.setdefault("n_iter", 0)
        first = closure()
        loss, calls = float(first), 1
        own["func_evals"] += 1
        grad = self._gradient()
        if bool(grad.abs().max() <= group["tolerance_grad"]):
            return first
        for iteration in range(1, group["max_iter"] + 1):
            own["n_iter"] += 1
            direction = _direction(own, grad, group["history_size"])
            own["d"] = direction
            own["prev_flat_grad"], own["prev_loss"] = grad.clone(), loss
            distance: Any = lr
            if own["n_iter"] == 1:
                total = float(grad.abs().sum())
                distance = (1.0 / total if total > 1 else 1.0) * lr
            own["t"] = distance
            slope = grad.dot(direction)
            if bool(slope > -tolerance):
                break
            evaluations = 0
            if group["line_search_fn"] is not None:
                kept = [p.clone() for p in group["params"]]

                def evaluate(distance: Any) -> tuple[float, Tensor]:
                    self._go(distance, direction)  # noqa: B023
                    found = float(closure())
                    for param, value in zip(group["params"], kept):  # noqa: B023
                        param.copy_(value)
                    return found, self._gradient()

                start = (0.0, loss, grad, float(slope))
                most = group["max_eval"] - calls
                size = float(direction.abs().max())
                loss, grad, distance, evaluations = _search(
                    evaluate, distance, direction, start, size, tolerance, most
                )
                self._go(distance, direction)
            else:
                self._go(distance, direction)
                if iteration != group["max_iter"]:
                    # The next call of step() begins with this evaluation.
                    loss, grad, evaluations = float(closure()), self._gradient(), 1
            own["t"] = distance
            calls += evaluations
            own["func_evals"] += evaluations
            if (
                calls >= group["max_eval"]
                or bool(grad.abs().max() <= group["tolerance_grad"])
                or bool((direction * distance).abs().max() <= tolerance)
                or abs(loss - own["prev_loss"]) < tolerance
            ):
                break
        return first


def _direction(own: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
    """Adds the last step to the history and returns the estimated inverse Hessian times -grad."""
    if own["n_iter"] == 1:
        own.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -grad
    change, moved = grad - own["prev_flat_grad"], own["d"] * own["t"]
    curvature = change.dot(moved)
    changes, moves, inverse = own["old_dirs"], own["old_stps"], own["ro"]
    if bool(curvature > 1e-10):
        if len(changes) == history_size:
            for entries in (changes, moves, inverse):
                del entries[0]
        changes.append(change)
        moves.append(moved)
        inverse.append(1.0 / curvature)
        own["H_diag"] = curvature / change.dot(change)
    q = -grad
    scales = []
    for y, s, ro in zip(reversed(changes), reversed(moves), reversed(inverse)):
        scales.append(s.dot(q) * ro)
        q = q - y * scales[-1]
    r = q * own["H_diag"]
    own["al"] = [*reversed(scales), *[None] * (history_size - len(scales))]
    for y, s, ro, scale in zip(changes, moves, inverse, reversed(scales)):
        r = r + s * (scale - y.dot(r) * ro)
    return r


# ---- Line search. A point is (distance, loss, gradient, slope along the direction).

_Point = tuple[Any, float, Tensor, float]
# Nocedal and Wright's constants of sufficient decrease and of curvature.
_DECREASE, _CURVATURE = 1e-4, 0.9


def _between(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> float:
    """The minimizer of the cubic through two points with their slopes: equation 3.59."""
    low, high = bounds or (min(a[0], b[0]), max(a[0], b[0]))
    (x, f, _, g), (y, h, _, k) = (a, b) if a[0] <= b[0] else (b, a)
    if x == y:
        return float(low + high) / 2
    d1 = g + k - 3 * (f - h) / (x - y)
    square = d1 * d1 - g * k
    if not square >= 0:
        return float(low + high) / 2
    d2 = square**0.5
    under = k - g + 2 * d2
    if under == 0:
        return float(low + high) / 2
    return float(min(max(y - (y - x) * ((k + d2 - d1) / under), low), high))


def _search(
    evaluate: _Evaluate,
    distance: Any,
    direction: Tensor,
    start: _Point,
    size: float,
    tolerance: float,
    most: int,
) -> tuple[float, Tensor, Any, int]:
    """(loss, gradient, distance, evaluations) of a point that fulfils the strong Wolfe conditions,
    or of the best one after `most` more evaluations. size: the largest entry of the direction."""
    _, loss, _, slope = start

    def at(distance: Any) -> _Point:
        f, gradient = evaluate(distance)
        return distance, f, gradient, float(gradient.dot(direction))

    def is_high(point: _Point) -> bool:
        return point[1] > loss + _DECREASE * point[0] * slope

    def is_flat(point: _Point) -> bool:
        return abs(point[3]) <= -_CURVATURE * slope

    before, point = start, at(distance)
    evaluations, rounds = 1, 0
    bracket: list[_Point] = []
    while rounds < most:
        if is_high(point) or (rounds > 1 and point[1] >= before[1]):
            bracket = [before, point]
            break
        if is_flat(point):
            return point[1], point[2], point[0], evaluations
        if point[3] >= 0:
            bracket = [before, point]
            break
        bounds = (point[0] + 0.01 * (point[0] - before[0]), point[0] * 10)
        before, point = point, at(_between(before, point, bounds))
        evaluations += 1
        rounds += 1
    bracket = bracket or [start, point]
    if bracket[0][1] > bracket[1][1]:
        bracket.reverse()
    is_stuck = False
    # bracket[0] is the point with the lower loss.
    while rounds < most:
        low, high = bracket
        ends = sorted((low[0], high[0]))
        if (ends[1] - ends[0]) * size < tolerance:
            break
        distance = _between(low, high)
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - distance, distance - ends[0]) < margin:
            # The distance is near an end for the second time in a row, or at it: move it away.
            if is_stuck or distance >= ends[1] or distance <= ends[0]:
                is_near_end = abs(distance - ends[1]) < abs(distance - ends[0])
                distance = ends[1] - margin if is_near_end else ends[0] + margin
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        point = at(distance)
        evaluations += 1
        rounds += 1
        if is_high(point) or point[1] >= low[1]:
            bracket = [low, point] if low[1] <= point[1] else [point, low]
            continue
        if is_flat(point):
            bracket = [point, high]
            break
        bracket = [point, low if point[3] * (high[0] - low[0]) >= 0 else high]
    distance, loss, gradient, _ = bracket[0]
    return loss, gradient, distance, evaluations
