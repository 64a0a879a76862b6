"""Functional tensors under a mode and in networks, zero tensors, and streams in schemas."""

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import Library
from torch.utils._python_dispatch import TorchDispatchMode


def without_functionalization():
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
    return torch._C._ExcludeDispatchKeyGuard(keys)


def by_mode(function):
    def called(*given):
        with without_functionalization(), FunctionalTensorMode():
            made = function(*map(FunctionalTensor.to_functional, given))
        torch._sync(made.elem)
        return torch._from_functional_tensor(made.elem)

    return called


def columns(x):
    y = x.clone()
    y[:, 1].mul_(3)
    return y.sum(0) + x.view(-1)[0]


def two(x, y):
    z = x.t().contiguous()
    z.add_(y)
    z[0].zero_()
    return torch.cat([z, y])


x = torch.arange(6.0).view(2, 3)
for function, given in ((columns, (x,)), (two, (x, torch.ones(3, 2)))):
    print(function(*given).tolist(), by_mode(function)(*given).tolist())
    # What is not used tells of PyTorch's own copies.
    graph = make_fx(by_mode(function))(*given)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    print(graph.code.strip(), graph(*given).tolist())
with without_functionalization(), FunctionalTensorMode():
    fresh = torch.ops.aten.lift_fresh.default(x)
    made = FunctionalTensor.to_functional(x)
print(type(fresh).__name__, fresh.untyped_storage() != x.untyped_storage())
try:
    made.add(1)
except RuntimeError:
    print("refused")


def functional(function, reapply_views=False):
    def called(*given):
        wrapped = [torch._to_functional_tensor(each) for each in given]
        torch._enable_functionalization(reapply_views=reapply_views)
        try:
            made = function(*wrapped)
        finally:
            torch._disable_functionalization()
        for tensor, wrapper in zip(given, wrapped):
            torch._sync(wrapper)
            now = torch._from_functional_tensor(wrapper)
            if now is not tensor:
                tensor.copy_(now)
        torch._sync(made)
        return torch._from_functional_tensor(made)

    return called


def over_storage(x):
    y = torch.ones(2)
    y.set_(x.storage())
    return y


print(functional(over_storage, True)(torch.ones(2)).device)


def normalized(kind, training):
    def function(x, mean, var):
        with enable_python_dispatcher():
            return kind(x, None, None, mean, var, training, 0.1, 1e-5, False)

    return function


for kind in (torch.batch_norm, torch.instance_norm):
    given = torch.linspace(-2, 2, 48).view(2, 3, 2, 4), torch.zeros(3), torch.ones(3)
    graph = make_fx(functional(normalized(kind, True)))(*given)
    print(graph.code.strip(), graph(*given).sum(1), given[1:])
    print(normalized(kind, True)(*given).sum(1), normalized(kind, False)(*given).sum(1), given[1:])

print(make_fx(functional(lambda x: torch.block_diag(x, x)))(x).code.strip())
parts = [torch.tensor(2.0), torch.arange(2.0), x.double(), torch.ones(1, 2)]
parts = [part.clone().requires_grad_() for part in parts]
weights = torch.arange(50.0).view(5, 10)[:, :8]
made = torch.block_diag(*parts)
print(made.detach(), [g.tolist() for g in torch.autograd.grad((made * weights).sum(), parts)])
with torch.no_grad():
    print(torch.vmap(torch.block_diag)(torch.ones(2, 1, 2), torch.ones(2, 2)))
print(torch.func.jvp(torch.block_diag, (x.detach(), x), (x.detach(), x))[1])


def conjugated(z):
    y = z.clone().conj()
    y.mul_(2j)
    return torch.view_as_real(y.resolve_conj())


def negated(x):
    y = x._neg_view()
    return y.resolve_neg() + y


z = torch.complex(torch.arange(3.0), torch.ones(3))
for function, given in ((conjugated, z), (negated, torch.arange(3.0))):
    print(make_fx(functional(function, True))(given.clone()).code.strip())
    print(function(given.clone()).tolist(), functional(function, True)(given.clone()).tolist())


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func)
        return func(*args, **(kwargs or {}))


with Seen():
    lazy = z.conj()
    made = [lazy * 2, lazy.resolve_conj(), torch.add(lazy, lazy), lazy.clone()]
    made.append(z.clone().conj().mul_(2))
    made.append(torch.mul(z, z, out=z.clone().conj()))
print(*(each.tolist() for each in made))

x = x.detach()
zeros = torch._efficientzerotensor(2, 3)
print(zeros._is_zerotensor(), x._is_zerotensor(), (x + zeros).tolist())
library = Library("of_zeros", "DEF")
library.define("negated(Tensor self) -> Tensor")
library.impl("negated", lambda x: -x, "CPU")
library.impl("negated", lambda x: torch._efficientzerotensor(x.shape), "ZeroTensor")
print([torch.ops.of_zeros.negated(each)._is_zerotensor() for each in (x, zeros)])
print("of_zeros/negated/CPU" in torch.library._impls)

library.define("stream_of(Tensor self) -> Stream")
library.impl("stream_of", lambda _: torch.Stream(stream_id=0, device_index=1, device_type=2), "CPU")


def numbers(stream):
    return stream.stream_id, stream.device_index, stream.device_type


class Streams(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(func, [numbers(arg) for arg in args if isinstance(arg, torch.Stream)])
        if func._schema.returns:
            return torch.Stream(stream_id=1, device_index=2, device_type=3)


print(numbers(torch.ops.of_zeros.stream_of(x)))
with Streams():
    x.record_stream(torch.Stream(stream_id=1, device_index=2, device_type=3))
    print(numbers(torch.ops.of_zeros.stream_of(x)))
del library
print("of_zeros/negated/CPU" in torch.library._impls)


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [arg.inner if isinstance(arg, Wrapped) else arg for arg in args]
        made = func(*inner, **(kwargs or {}))
        if func.overloadpacket is torch.ops.aten.add:
            return None
        return made if func._schema.name.endswith("_") else Wrapped(made)


wrapped = Wrapped(torch.ones(2) / 2)
before = wrapped._version
wrapped.detach().mul_(1)
between = wrapped._version
wrapped.data.mul_(1)
print(before, between, wrapped._version)
wrapped.requires_grad_()
result = wrapped.acos()
try:
    result.backward(Wrapped(torch.ones(2)))
except RuntimeError:
    print("no result")
