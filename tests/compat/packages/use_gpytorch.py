# packages: gpytorch==1.15.2, linear-operator==0.6.1, jaxtyping==0.3.11, wadler-lindig==0.1.8
"""Exact Gaussian-process regression: hyperparameters trained, then predictions."""

import math

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 20)
y = torch.sin(x * (2 * math.pi)) + torch.randn(20) * 0.2


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(15):
    optimizer.zero_grad()
    loss = -mll(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item(), model.covar_module.base_kernel.lengthscale.item(), likelihood.noise.item())
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var(False):
    prediction = likelihood(model(torch.linspace(0, 1, 7)))
    print(prediction.mean, prediction.variance)
for kernel in (gpytorch.kernels.MaternKernel(1.5), gpytorch.kernels.PeriodicKernel()):
    print(kernel(x[:4]).to_dense())
