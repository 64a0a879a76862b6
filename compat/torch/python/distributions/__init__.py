"""torch.distributions: probability distributions with differentiable parameters.

For equal seeds, the samples equal PyTorch's.
"""

from __future__ import annotations

from typing import Any

from lamella.compat.distributions import constraints as constraints
from lamella.compat.distributions import kl_mixed as kl_mixed
from lamella.compat.distributions import transforms as transforms
from lamella.compat.distributions.compound import *  # noqa: F403
from lamella.compat.distributions.constraint_registry import biject_to as biject_to
from lamella.compat.distributions.constraint_registry import transform_to as transform_to
from lamella.compat.distributions.continuous import *  # noqa: F403
from lamella.compat.distributions.continuous_bernoulli import *  # noqa: F403
from lamella.compat.distributions.dirichlet import *  # noqa: F403
from lamella.compat.distributions.discrete import *  # noqa: F403
from lamella.compat.distributions.distribution import Distribution as Distribution
from lamella.compat.distributions.distribution import ExponentialFamily as ExponentialFamily
from lamella.compat.distributions.kl import kl_divergence as kl_divergence
from lamella.compat.distributions.kl import register_kl as register_kl
from lamella.compat.distributions.multivariate import *  # noqa: F403
from lamella.compat.distributions.transformed import *  # noqa: F403
from lamella.compat.distributions.transforms import *  # noqa: F403
from lamella.compat.distributions.von_mises import *  # noqa: F403
from lamella.compat.distributions.wishart import *  # noqa: F403


def __getattr__(name: str) -> Any:
    import importlib

    from lamella.compat import find_module
    from lamella.compat._absent import missing

    if not name.startswith("__") and find_module(f"distributions.{name}") is not None:
        return importlib.import_module(f"torch.distributions.{name}")
    raise missing(f"distributions.{name}", globals())
