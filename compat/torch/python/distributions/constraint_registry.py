"""torch.distributions.constraint_registry: for each constraint, a transform from the reals to
it."""

from __future__ import annotations

from typing import Any

from lamella.compat.distributions import constraints, transforms


class ConstraintRegistry:
    """Maps types of constraints to functions that create a transform."""

    def __init__(self) -> None:
        self._registry: dict[type, Any] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers the function for a type of constraints, or for the type of a constraint."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(f"register: expected a Constraint, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform from the reals to a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"expected a region with a map, got {constraint!r}")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(kind: Any) -> Any:
    def register(factory: Any) -> Any:
        biject_to.register(kind, factory)
        return transform_to.register(kind, factory)

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


def _independent(registry: ConstraintRegistry) -> Any:
    def make(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return make


biject_to.register(constraints.independent, _independent(biject_to))
transform_to.register(constraints.independent, _independent(transform_to))


@_both(constraints.positive)
def _to_positive(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


_both(constraints.nonnegative)(_to_positive)


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.unit_interval)
def _to_interval(constraint: Any) -> Any:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    spread = transforms.AffineTransform(lower, upper - lower)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), spread])


_both(constraints.half_open_interval)(_to_interval)


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@_both(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@_both(constraints.positive_definite)
def _to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


_both(constraints.positive_semidefinite)(_to_positive_definite)


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _cat(registry: ConstraintRegistry) -> Any:
    def make(constraint: Any) -> Any:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    return make


def _stack(registry: ConstraintRegistry) -> Any:
    def make(constraint: Any) -> Any:
        return transforms.StackTransform([registry(p) for p in constraint.cseq], constraint.dim)

    return make


for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _cat(_registry))
    _registry.register(constraints.stack, _stack(_registry))
