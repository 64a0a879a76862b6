"""torch.masked, with gradients."""

import torch
from torch import masked

x = torch.tensor([[1.0, 2, 3], [4, 5, 6], [-1, 0.5, 2]])
mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
row = torch.tensor([True, False, True])

OVER_DIMS = "sum prod amax amin mean var std logsumexp norm".split()
ALONG_ONE = "softmax log_softmax softmin cumsum cumprod".split()


def show(name, call):
    try:
        print(name, call())
    except Exception as error:
        print(name, type(error).__name__)


for name in OVER_DIMS:
    function = getattr(masked, name)
    for at in (None, 1, (0,), (0, 1)):
        for given in (mask, row, None):
            show(f"{name} {at}", lambda: function(x, dim=at, mask=given))  # noqa: B023
    show(name, lambda: function(x, dim=1, keepdim=True, mask=mask))  # noqa: B023
    show(name, lambda: function(x, dim=1, dtype=torch.float64, mask=mask))  # noqa: B023
    if name != "logsumexp":
        show(name, lambda: function(x.int(), dim=1, mask=mask))  # noqa: B023
for name in ALONG_ONE:
    function = getattr(masked, name)
    for at in (0, 1):
        show(f"{name} {at}", lambda: function(x, at, mask=mask))  # noqa: B023
for name in ("argmax", "argmin", "median"):
    function = getattr(masked, name)
    for at in (0, 1):
        show(f"{name} {at}", lambda: function(x, at, mask=mask))  # noqa: B023
show("norm", lambda: [masked.norm(x, p, 1, mask=mask) for p in (1, 3.0, torch.inf, -torch.inf)])
show("normalize", lambda: masked.normalize(x, 2.0, 1, mask=mask))
show("logaddexp", lambda: masked.logaddexp(x, -x, input_mask=mask, other_mask=row))
show("var", lambda: masked.var(x, 1, False, mask=mask))
show("var", lambda: masked.var(x, 1, correction=2, mask=mask))
show("median", lambda: masked.median(x * torch.nan, 1))
show("sum", lambda: masked.sum(x, mask=torch.ones(1, 1, 1, dtype=torch.bool)))

leaf = x.clone().requires_grad_()
for function in (masked.sum, masked.mean, masked.amax, masked.logsumexp, masked.var):
    (grad,) = torch.autograd.grad(function(leaf, 1, mask=mask)[[0, 2]].sum(), leaf)
    print(grad)
print(masked.is_masked_tensor(x))
