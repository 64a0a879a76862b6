# packages: botorch==0.18.1, gpytorch==1.15.2, linear_operator==0.6.1, jaxtyping==0.3.11
# packages: wadler_lindig==0.1.8, multipledispatch==1.0.0, pyre-extensions==0.0.32
# packages: typing-inspect==0.9.0, pyro-ppl==1.9.2, pyro-api==0.1.2
"""Bayesian optimization: a Gaussian process fitted by SciPy, acquisition functions."""

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qLogExpectedImprovement,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
X = torch.rand(10, 2, dtype=torch.double)
Y = -(X - 0.5).pow(2).sum(-1, keepdim=True)
gp = SingleTaskGP(X, Y)
mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
fit_gpytorch_mll(mll)
print(
    gp.posterior(torch.tensor([[0.2, 0.3]], dtype=torch.double)).mean.item(),
    gp.posterior(torch.tensor([[0.2, 0.3]], dtype=torch.double)).variance.item(),
)
for a in (LogExpectedImprovement(gp, Y.max()), UpperConfidenceBound(gp, beta=0.1)):
    print(a(torch.tensor([[[0.4, 0.5]]], dtype=torch.double)).item())
try:
    c, v = optimize_acqf(
        LogExpectedImprovement(gp, Y.max()),
        torch.tensor([[0.0, 0], [1, 1]], dtype=torch.double),
        q=1,
        num_restarts=2,
        raw_samples=16,
    )
    print(c, v)
    q = qLogExpectedImprovement(gp, Y.max())
    print(q(torch.rand(1, 2, 2, dtype=torch.double)).item())
except Exception as e:
    print("FAIL", type(e).__name__, str(e)[:200])
