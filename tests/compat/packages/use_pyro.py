# packages: pyro-ppl==1.9.2, pyro-api==0.1.2, opt-einsum==3.4.0, tqdm==4.70.1
"""Variational inference and Hamiltonian Monte Carlo."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.optim import Adam

pyro.set_rng_seed(0)
x = torch.randn(30, 2)
y = x @ torch.tensor([1.5, -0.7]) + 0.3 + 0.1 * torch.randn(30)


def model(x, y):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.HalfNormal(1.0))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
print([svi.step(x, y) for _ in range(10)])
print(pyro.param("AutoDiagonalNormal.loc"), guide.median()["scale"])
pyro.clear_param_store()
pyro.set_rng_seed(1)
mcmc = MCMC(NUTS(model, max_tree_depth=3), num_samples=5, warmup_steps=5, disable_progbar=True)
mcmc.run(x, y)
print(mcmc.get_samples()["bias"].shape)
