"""Values, dtypes and types of errors in corner cases of operators."""

import torch
import torch.nn.functional as F
from torch import inf, nan

# The middle sample has no part in a slope between even samples.
samples = torch.tensor([2, -2, inf, inf, -inf, 3, -inf, 2, nan, 3, inf])
print(torch.gradient(samples), torch.gradient(samples, edge_order=2))
print(torch.gradient(torch.arange(4.0) ** 2, spacing=2j))
print(torch.gradient(torch.arange(4) ** 2, spacing=[1 + 1j]))

ends = torch.tensor(0.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
print(torch.linspace(*ends, 4).requires_grad, torch.logspace(ends[0], 3, 2).requires_grad)

# One number is written to memory that several elements share.
shared = torch.ones(3, 1).expand(3, 2)
shared.masked_fill_(torch.tensor([[True], [False], [True]]), 5)
shared.index_fill_(0, torch.tensor([1]), 7)
shared[torch.tensor([0])] = 9
print(shared)

# A smaller type is compared with a number's value in that type.
for dtype in (torch.bfloat16, torch.float16):
    x = torch.tensor([0.3, 1.0], dtype=dtype)
    print(x == 0.3, x > 0.3, x <= 0.3, x >= torch.tensor(0.3), torch.isin(x, 0.3), x < 1e6)

x = torch.tensor([0.0, 1e-310, 1e-200, 1.0], dtype=torch.float64, requires_grad=True)
torch.sinc(x).sum().backward()
print(x.grad)

one, two = torch.tensor(2.0), torch.tensor(3.0)
print(torch.autograd.functional.hessian(lambda x: x**3, one))
print(torch.autograd.functional.jacobian(lambda x, y: x**3 * y, (one, two)))
print(torch.autograd.functional.vhp(lambda x: (x**3).sum().reshape(1, 1), one, two))
print(torch.func.jacrev(lambda x: x**3)(one), torch.func.hessian(lambda x: x**3)(one))

print(float(torch.tensor(1 + 0j)), int(torch.tensor([3 + 0j])), complex(torch.tensor(1 + 2j)))


def kind(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


size = torch.Size([2])
print(type((1,) + size).__name__, (1,) + size, size + (3,), type(() + size).__name__)
for seed in (2**64, -(2**63) - 1):
    print(kind(lambda seed=seed: torch.manual_seed(seed)))
print(torch.manual_seed(2**64 - 1).initial_seed(), torch.manual_seed(-5).initial_seed())
print(kind(lambda: "a" in torch.ones(2)), 1 in torch.ones(2))
print(kind(lambda: torch.set_num_interop_threads(0)))

x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward(torch.tensor(1))
print(x.grad)

x = torch.empty(2, 3, 5, 7, memory_format=torch.channels_last)
print(x.dim_order(), x.dim_order(ambiguity_check=True), torch.empty(2, 1).dim_order())
print(kind(lambda: torch.empty(2, 1).dim_order(ambiguity_check=True)))
print(
    torch.tensor([1, 2]).map2_(
        torch.tensor([3, 4]), torch.tensor([5, 6]), lambda a, b, c: a + b * c
    )
)

zero = torch.zeros(2, 2, dtype=torch.complex128)
print([torch.linalg.cond(zero, p).item() for p in (1, -1, torch.inf, "fro")])
print(torch.linalg.cond(torch.ones(2, 0, 0)), torch.linalg.cond(torch.ones(0, 0), "nuc"))
truths, whole = torch.tensor([True, False]), torch.ones(2, 2, dtype=torch.int32)
print(torch.addr(whole, truths, truths), torch.addr(whole, truths, truths, beta=0).dtype)
print(kind(lambda: torch.addr(whole, truths, truths, alpha=2.5)))
print(torch.cat([torch.ones(0), torch.ones(0)], 1), kind(lambda: torch.einsum("ij")))
print(torch.vander(torch.tensor([1, 2]), 0).shape, torch.vander(torch.tensor([True, False]), 1))
print(torch.tensor([2**70, 1.5]), torch.tensor(-(2**64), dtype=torch.bool))
print(kind(lambda: complex(torch.ones(2))), kind(lambda: float(torch.ones(2))))
print(torch.ones(2, dtype=torch.float32, device="cpu", out=torch.empty(0)))
print(torch.arange(3, dtype=torch.int64, out=torch.empty(0, dtype=torch.int64)))
print(kind(lambda: torch.zeros(2, dtype=torch.float64, out=torch.empty(0))))

# Columns of which nothing is finite, in sums along and across memory.
table = torch.full((3, 40), -inf)
table[:, 3] = 2
print([t.logsumexp(d).tolist()[:5] for t in (table, table.t().contiguous().t()) for d in (0, 1)])
print(torch.tensor([[-inf, inf, nan]] * 20).logsumexp(0))

y, x = (torch.tensor([0.0, 0.0, 1.0, -0.0], requires_grad=True) for _ in range(2))
torch.atan2(y, x).sum().backward()
print(y.grad + 0, x.grad + 0)
print(
    torch.tensor([1e30, -1e30], dtype=torch.float16),
    torch.tensor(1e300),
    torch.tensor(1e300, dtype=torch.complex64),
)
x = torch.tensor([1e-40, 0.0], requires_grad=True)
torch.special.i1e(x).sum().backward()
print(x.grad)

# Gradients at 0 of roots that are taken of sums.
a, b = torch.zeros(2, requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
print(torch.autograd.grad(F.cosine_similarity(a, b, 0), (a, b)))
print(torch.autograd.grad(F.cosine_similarity(a, a, 0), a))
x = torch.tensor([[[0.0, 0.0, 3.0, 4.0]]], requires_grad=True)
print(torch.autograd.grad(F.lp_pool1d(x, 2.0, 2).sum(), x), F.lp_pool1d(-x, 3.0, 2))
