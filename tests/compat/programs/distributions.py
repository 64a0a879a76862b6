"""torch.distributions: samples for a seed, densities, moments, gradients, divergences, maps."""

import torch
import torch.distributions as D
from torch.distributions import constraints, kl_divergence, transforms
from torch.distributions.normal import Normal

a, b = torch.tensor([0.5, 1.5, 2.5]), torch.tensor([0.3, 1.2, 2.0])
p = torch.tensor([0.2, 0.5, 0.7])
w = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
m = torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
T = torch.tensor


def made():
    yield D.Normal(a, b)
    yield D.Normal(0.0, 2.0)
    yield D.Laplace(a, b)
    yield D.Cauchy(a, b)
    yield D.Uniform(-a, b)
    yield D.Exponential(b)
    yield D.Gamma(a, b)
    yield D.Chi2(a)
    yield D.StudentT(a + 3, a, b)
    yield D.Beta(a, b)
    yield D.Dirichlet(w * 5)
    yield D.FisherSnedecor(a + 5, b + 5)
    yield D.HalfNormal(b)
    yield D.HalfCauchy(b)
    yield D.LogNormal(a, b)
    yield D.Gumbel(a, b)
    yield D.Weibull(a, b)
    yield D.Pareto(a, b + 3)
    yield D.InverseGamma(a + 3, b)
    yield D.Kumaraswamy(a, b)
    yield D.ContinuousBernoulli(p)
    yield D.VonMises(a, b)
    yield D.Wishart(T(4.5), m)
    yield D.Bernoulli(p)
    yield D.Bernoulli(logits=a)
    yield D.Geometric(p)
    yield D.Binomial(10, p)
    yield D.Binomial(T([3.0, 40.0, 100.0]), p)
    yield D.NegativeBinomial(a + 2, p)
    yield D.Poisson(T([0.5, 4.0, 30.0]))
    yield D.Categorical(w)
    yield D.Categorical(logits=w.log() + 1)
    yield D.OneHotCategorical(w)
    yield D.Multinomial(7, w)
    yield D.MultivariateNormal(a, m)
    yield D.MultivariateNormal(a, precision_matrix=m)
    yield D.MultivariateNormal(a, scale_tril=torch.linalg.cholesky(m))
    yield D.LowRankMultivariateNormal(a, m[:, :2], b)
    yield D.LKJCholesky(3, 1.5)
    yield D.Independent(D.Normal(a, b), 1)
    yield D.MixtureSameFamily(D.Categorical(p), D.Normal(a, b))
    yield D.RelaxedBernoulli(T(0.7), p)
    yield D.RelaxedOneHotCategorical(T(0.7), w)
    yield D.LogisticNormal(a, b)
    yield D.TransformedDistribution(D.Normal(a, b), [transforms.AffineTransform(1, 2)])
    yield D.TransformedDistribution(D.Normal(a, b), transforms.SigmoidTransform())


def told(name, function):
    try:
        print(" ", name, function())
    except (NotImplementedError, AttributeError):
        print(" ", name, "is not there")


for d in made():
    name = type(d).__name__
    print(name, tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample, d.has_enumerate_support)
    torch.manual_seed(0)
    x = d.sample((2,))
    print("  sample", x, torch.rand(1))
    print("  log_prob", d.log_prob(x))
    for what in ("mean", "variance", "stddev", "mode"):
        if what != "mode" or name not in ("Dirichlet", "Beta", "LogisticNormal"):
            told(what, lambda d=d, what=what: getattr(d, what))
    told("entropy", d.entropy)
    told("cdf", lambda d=d, x=x: d.cdf(x))
    if d.has_enumerate_support:
        told("support", lambda d=d: d.enumerate_support().shape)
    told("expand", lambda d=d, x=x: d.expand((4, *d.batch_shape)).log_prob(x[0]).sum())

for p1, q1 in (
    (D.Normal(a, b), D.Normal(b, a)),
    (D.Bernoulli(p), D.Bernoulli(1 - p)),
    (D.Categorical(w), D.Categorical(w.flip(-1))),
    (D.Gamma(a, b), D.Gamma(b, a)),
    (D.Beta(a, b), D.Beta(b, a)),
    (D.Dirichlet(w), D.Dirichlet(w.flip(-1))),
    (D.Exponential(a), D.Exponential(b)),
    (D.Laplace(a, b), D.Laplace(b, a)),
    (D.Poisson(a), D.Poisson(b)),
    (D.Uniform(a, a + 1), D.Uniform(a - 1, a + 2)),
    (D.Gumbel(a, b), D.Gumbel(b, a)),
    (D.Geometric(p), D.Geometric(1 - p)),
    (D.MultivariateNormal(a, m), D.MultivariateNormal(b, m + torch.eye(3))),
    (D.Independent(D.Normal(a, b), 1), D.Independent(D.Normal(b, a), 1)),
    (D.LogNormal(a, b), D.LogNormal(b, a)),
):
    print("kl", type(p1).__name__, kl_divergence(p1, q1))

# Gradients by the samples.
for make in (
    lambda u, v: D.Normal(u, v),
    lambda u, v: D.Laplace(u, v),
    lambda u, v: D.Gumbel(u, v),
    lambda u, v: D.MultivariateNormal(u, torch.diag_embed(v)),
    lambda u, v: D.LogNormal(u, v),
    lambda u, v: D.Gamma(u, v),
):
    torch.manual_seed(1)
    u, v = a.clone().requires_grad_(), b.clone().requires_grad_()
    (make(u, v).rsample((5,)) ** 2).sum().backward()
    print(torch.round(u.grad, decimals=2), torch.round(v.grad, decimals=2))

# Maps.
for t in (
    transforms.ExpTransform(),
    transforms.SigmoidTransform(),
    transforms.TanhTransform(),
    transforms.SoftplusTransform(),
    transforms.AffineTransform(1.0, -2.0),
    transforms.StickBreakingTransform(),
    transforms.CorrCholeskyTransform(),
    transforms.ComposeTransform([transforms.ExpTransform(), transforms.PowerTransform(T(0.5))]),
    D.biject_to(constraints.simplex),
    D.biject_to(constraints.interval(1.0, 3.0)),
    D.biject_to(constraints.greater_than(2.0)),
):
    y = t(a)
    print(type(t).__name__, y, t.inv(y), t.log_abs_det_jacobian(a, y))
print(
    D.transform_to(constraints.positive_definite)(m), D.transform_to(constraints.lower_cholesky)(m)
)
print(constraints.positive, constraints.unit_interval, constraints.simplex.check(w))
print(D.Normal(a, b), D.Categorical(w), D.Independent(D.Normal(a, b), 1).support.event_dim)
for wrong in (lambda: Normal(a, -b), lambda: D.Bernoulli(p * 2), lambda: D.Beta(a, b).log_prob(a)):
    try:
        print(wrong())
    except ValueError:
        print("ValueError")
print(D.Normal(a, -b, validate_args=False).scale)
