"""Calls with positional numbers that are keyword-only today."""

import warnings

import torch

warnings.simplefilter("ignore")
t, a, b = torch.ones(2, 2), torch.arange(4.0).reshape(2, 2), torch.tensor([[1.0, -2.0], [0.5, 3.0]])


def fails(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "no error"


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.addcmul(t, 2, a, b)
print([(w.category.__name__, str(w.message)[:39]) for w in caught])
print(torch.add(t, 0.5, a), t.add(2, a), t.clone().add_(0.5, a), t.add(2, 3))
print(torch.sub(t, 0.5, a), t.sub(3, b), t.clone().sub_(2, b))
print(torch.addcmul(t, 0.5, a, b), t.addcmul(2, a, b), t.clone().addcmul_(-1, a, b))
print(torch.addcdiv(t, 0.5, a, b), t.addcdiv(2, a, b), t.clone().addcdiv_(-1, a, b))
print(torch.addcmul(t, 2, a, tensor2=b), torch.addcmul(t, value=2, tensor1=a, tensor2=b))
print(torch.addmm(2, t, 3, a, b), torch.addmm(2, t, a, b), t.addmm(2, 3, a, b), t.addmm(2, a, b))
print(t.clone().addmm_(0.5, 3, a, b), t.clone().addmm_(2, a, b))
print(torch.addmv(2, t[0], 3, a, b[0]), t[0].addmv(2, a, b[0]))
print(torch.addr(2, t, 3, a[0], b[0]), t.addr(2, 3, a[0], b[0]))
print(torch.addbmm(2, t, 3, a[None], b[None]), t.addbmm(0, a[None], b[None]))
print(torch.baddbmm(2, t[None], 3, a[None], b[None]), t[None].baddbmm(2, a[None], b[None]))
out = torch.empty(2, 2)
print(torch.add(t, 0.5, a, out=out) is out, out, torch.addmm(2, t, a, b, out=out) is out, out)
x = a.clone().requires_grad_()
torch.addcmul(t, 2, x, x).sum().backward()
print(x.grad)
# What fits neither way fails as before.
print(fails(torch.add, t, a, b), fails(torch.addcmul, t, "2", a, b), fails(t.add_, 1, 2, 3))
print(fails(torch.addmm, 2, t, 3, 4, a, b), fails(torch.addmm, t, a, 2, b), fails(t.mul, 2, a))

# Sizes as the argument of the constructor.
print(torch.Tensor(x.shape).shape == x.shape, torch.Tensor(torch.Size([])).shape)
print(torch.Tensor((3, 4)), torch.Tensor(2).shape, torch.Tensor().shape)

# The memory of a storage as elements of a dtype.
print(torch.tensor(a.untyped_storage(), dtype=a.dtype), torch.tensor(a.storage(), dtype=a.dtype))
print(fails(torch.tensor, a.storage(), dtype=torch.int32))
print(fails(torch.use_deterministic_algorithms, 1))
print(fails(torch.use_deterministic_algorithms, False, warn_only=0))
