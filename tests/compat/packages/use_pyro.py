# packages: pyro-ppl==1.9.2, pyro-api==0.1.2
"""Bayesian regression by variational inference with three guides, and by NUTS."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal, AutoNormal

pyro.set_rng_seed(0)
x = torch.linspace(-1, 1, 20)
y = 2 * x + 0.5 + 0.1 * torch.randn(20)


def model(x, y=None):
    a = pyro.sample("a", dist.Normal(0.0, 1.0))
    b = pyro.sample("b", dist.Normal(0.0, 1.0))
    s = pyro.sample("s", dist.HalfCauchy(1.0))
    with pyro.plate("d", len(x)):
        return pyro.sample("obs", dist.Normal(a * x + b, s), obs=y)


for G in (AutoNormal, AutoDiagonalNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    g = G(model)
    svi = SVI(model, g, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    for _ in range(8):
        print(G.__name__, round(svi.step(x, y), 4))
    print({k: v.shape for k, v in Predictive(model, guide=g, num_samples=3)(x).items()})
pyro.set_rng_seed(0)
m = MCMC(NUTS(model), num_samples=5, warmup_steps=5, disable_progbar=True)
m.run(x, y)
print({k: v.mean().item() for k, v in m.get_samples().items()})
