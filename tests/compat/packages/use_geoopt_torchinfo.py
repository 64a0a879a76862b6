# packages: geoopt==0.5.1, torchinfo==1.8.0
"""Optimization on manifolds, and the summary of a network."""

import geoopt
import torch
import torchinfo

torch.manual_seed(0)
for M, sh in (
    (geoopt.PoincareBall(), (3,)),
    (geoopt.Sphere(), (3,)),
    (geoopt.Stiefel(), (4, 2)),
    (geoopt.Lorentz(), (4,)),
    (geoopt.SymmetricPositiveDefinite(), (3, 3)),
    (geoopt.Euclidean(), (3,)),
):
    try:
        x = geoopt.ManifoldParameter(
            M.random(*sh) if not isinstance(M, geoopt.Euclidean) else torch.randn(3), manifold=M
        )
        t = torch.randn(*sh)
        o = geoopt.optim.RiemannianAdam([x], lr=0.05)
        o2 = geoopt.optim.RiemannianSGD([x], lr=0.01)
        for _ in range(3):
            o.zero_grad()
            l = (x - t).pow(2).sum()
            l.backward()
            o.step()
            o2.step()
        print(
            type(M).__name__,
            x.detach().sum().item(),
            M.dist(x.detach(), x.detach()).sum().item()
            if hasattr(M, "dist") and not isinstance(M, geoopt.Stiefel)
            else "",
        )
    except Exception as e:
        print(type(M).__name__, "FAIL", type(e).__name__, str(e)[:200])
m = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
)
s = torchinfo.summary(m, (2, 3, 8, 8), verbose=0)
print(s)
