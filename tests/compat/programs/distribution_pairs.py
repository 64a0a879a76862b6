"""Divergences between all pairs of distributions, tiny concentrations, invalid arguments."""

import itertools
import warnings

import torch
import torch.distributions as D
from torch.distributions.kl import _KL_REGISTRY

warnings.simplefilter("ignore")
T = torch.tensor

MADE = {
    "Bernoulli": D.Bernoulli(T([0.2, 0.7])),
    "Beta": D.Beta(T([0.5, 2.0]), T([1.5, 0.7])),
    "Binomial": D.Binomial(T([5.0, 9.0]), T([0.2, 0.6])),
    "Categorical": D.Categorical(T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
    "Cauchy": D.Cauchy(T([0.0, 1.0]), T([1.0, 2.0])),
    "Chi2": D.Chi2(T([1.0, 3.5])),
    "ContinuousBernoulli": D.ContinuousBernoulli(T([0.2, 0.9])),
    "Dirichlet": D.Dirichlet(T([[0.5, 1.0, 2.0], [3.0, 1.0, 0.1]])),
    "Exponential": D.Exponential(T([0.5, 2.0])),
    "Gamma": D.Gamma(T([0.5, 2.0]), T([1.0, 3.0])),
    "GeneralizedPareto": D.GeneralizedPareto(T([0.0, 1.0]), T([1.0, 2.0]), T([0.1, -0.3])),
    "Geometric": D.Geometric(T([0.2, 0.7])),
    "Gumbel": D.Gumbel(T([0.0, 1.0]), T([1.0, 2.0])),
    "HalfNormal": D.HalfNormal(T([1.0, 2.0])),
    "Laplace": D.Laplace(T([0.0, 1.0]), T([1.0, 2.0])),
    "LogNormal": D.LogNormal(T([0.0, 1.0]), T([1.0, 0.5])),
    "MixtureSameFamily": D.MixtureSameFamily(
        D.Categorical(T([0.3, 0.7])), D.Normal(T([0.0, 1.0]), T([1.0, 2.0]))
    ),
    "Normal": D.Normal(T([0.0, 1.0]), T([1.0, 2.0])),
    "OneHotCategorical": D.OneHotCategorical(T([0.2, 0.3, 0.5])),
    "Pareto": D.Pareto(T([1.0, 2.0]), T([3.0, 2.5])),
    "Poisson": D.Poisson(T([0.5, 4.0])),
    "StudentT": D.StudentT(T([1.0, 3.0]), T([0.0, 1.0]), T([1.0, 2.0])),
    "Uniform": D.Uniform(T([0.0, 1.0]), T([1.0, 3.0])),
    "Uniform of one": D.Uniform(T([0.1, 0.05]), T([0.9, 0.95])),
    "Uniform around one": D.Uniform(T([-0.5, -0.1]), T([2.0, 1.1])),
    "Wishart": D.Wishart(T(4.0), T([[2.0, 0.3], [0.3, 1.0]])),
    "Wishart of more": D.Wishart(T(5.0), T([[1.0, -0.2], [-0.2, 3.0]])),
}


def tells(function):
    try:
        found = function()
    except Exception as error:
        return type(error).__name__
    return torch.round(found, decimals=4) + 0.0 if isinstance(found, torch.Tensor) else found


# PyTorch takes a uniform distribution that ends where the other one does for one that is apart.
APART = {"ContinuousBernoulli", "Uniform"}
for (name, p), (other, q) in itertools.product(MADE.items(), MADE.items()):
    if name != other and {name, other} != APART:
        print(name, other, tells(lambda p=p, q=q: D.kl_divergence(p, q)))
pairs = {(p.__name__, q.__name__) for p, q in _KL_REGISTRY} - {("LogNormal", "LogNormal")}
print(sorted(pairs))

p = MADE["GeneralizedPareto"]
torch.manual_seed(0)
print(p, p.support, p.mean, p.variance, p.mode, p.entropy(), p.sample((2,)), p.expand((3, 2)).mean)
print(p.cdf(T([0.5, 2.0])), p.icdf(T([0.3, 0.6])), p.log_prob(T([0.5, 2.0])))
for k in (0.0, 0.6, 1.2, -1.0):
    p = D.GeneralizedPareto(T(0.0), T(2.0), T(k))
    print(p.mean, p.variance, p.entropy(), p.support, p.cdf(T(0.5)), p.icdf(T(0.3)))
print(MADE["MixtureSameFamily"].support, MADE["Uniform"].arg_constraints["low"].upper_bound)
print(D.Categorical(T([0.5, 0.5])).arg_constraints, MADE["Dirichlet"].arg_constraints)

# Concentrations at which numbers fall below what a dtype has.
for dtype in (torch.float32, torch.float64):
    for size in (0.1, 0.01, 1e-3, 1e-5, 1e-8, 50.0, 1e3, 1e6):
        c = torch.full((3,), size, dtype=dtype)
        torch.manual_seed(0)
        for p in (D.Gamma(c, torch.ones_like(c)), D.Beta(c, c), D.Dirichlet(c), D.Chi2(c)):
            print(size, p.sample((2,)), p.sample((1,)))

BAD = [
    ("Normal", (0.0, -1.0)), ("Normal", (T([0.0]), T([float("nan")]))), ("Beta", (-1.0, 1.0)),
    ("Gamma", (0.0, 1.0)), ("Categorical", (T([-0.1, 1.1]),)), ("Categorical", (T(0.5),)),
    ("Bernoulli", (1.5,)), ("Bernoulli", ()), ("Bernoulli", (0.5, 0.5)), ("Chi2", (T([-2.0]),)),
    ("Dirichlet", (T([-1.0, 1.0]),)), ("Dirichlet", (T(1.0),)), ("Uniform", (1.0, 0.0)),
    ("Poisson", (-1.0,)), ("Exponential", (0.0,)), ("Geometric", (0.0,)), ("HalfCauchy", (0.0,)),
    ("MultivariateNormal", (torch.zeros(2),)), ("StudentT", (0.0,)), ("VonMises", (0.0, 0.0)),
    ("MultivariateNormal", (T([0.0, 0.0]), torch.zeros(2, 2))), ("Weibull", (0.0, 1.0)),
    ("Wishart", (1.0, torch.eye(3))), ("LKJCholesky", (1,)), ("Binomial", (-1, T(0.5))),
    ("NegativeBinomial", (0, T(1.0))), ("Normal", (T([0.0, 0.0]), T([1.0, 1.0, 1.0]))),
    ("Pareto", (0.0, 1.0)), ("ContinuousBernoulli", (2.0,)), ("LogNormal", (0.0, 0.0)),
    ("Kumaraswamy", (0.0, 1.0)), ("InverseGamma", (0.0, 1.0)), ("FisherSnedecor", (0.0, 1.0)),
    ("MixtureSameFamily", (1, 2)), ("Independent", (D.Normal(0.0, 1.0), 1)),
    ("TransformedDistribution", (D.Normal(0.0, 1.0), 3)), ("HalfNormal", (-1.0,)),
    ("LowRankMultivariateNormal", (torch.zeros(3), torch.zeros(2, 1), torch.ones(3))),
]  # fmt: skip
for name, arguments in BAD:
    print(name, tells(lambda name=name, given=arguments: getattr(D, name)(*given)))
