"""What transforms refuse, and what they compute where a program hides or switches off parts of
autograd. The kinds of errors are compared."""

import warnings
from functools import partial

import torch
from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from torch.autograd import functional
from torch.autograd.graph import save_on_cpu
from torch.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp


def tried(name, call):
    try:
        call()
        print(name, "passes")
    except Exception as error:
        print(name, type(error).__name__)


x, t = torch.tensor(0.5), torch.tensor(2.0)


def saving(x):
    with save_on_cpu():
        return x.sin()


for transform in (grad, grad_and_value, jacrev, hessian):
    tried(transform.__name__, lambda transform=transform: transform(saving)(x))
    with save_on_cpu():
        tried(transform.__name__, lambda transform=transform: transform(torch.sin)(x))
tried("vjp", lambda: vjp(saving, x))
tried("jvp", lambda: jvp(saving, (x,), (t,)))
with save_on_cpu():
    print(torch.autograd.grad((y := x.clone().requires_grad_()).sin(), y))

for transform in (grad, grad_and_value, jacrev, jacfwd):
    for aux in (3, "text", [torch.ones(1), 1.5]):
        tried("aux", partial(transform(lambda x, aux=aux: (x.sin(), aux), has_aux=True), x))
    print(transform(lambda x: (x.sin(), {"k": x}), has_aux=True)(x)[1])
tried("aux", lambda: vjp(lambda x: (x.sin(), 1), x, has_aux=True))
tried("aux", lambda: jvp(lambda x: (x.sin(), 1), (x,), (t,), has_aux=True))

for name in ("jacobian", "hessian", "vjp", "jvp"):
    function = getattr(functional, name)
    print(function(torch.sin, x) if name in ("jacobian", "hessian") else function(torch.sin, x, t))
    tried(name, partial(grad(partial(function, torch.sin)), x))
for name in ("jacobian", "hessian"):
    function = getattr(functional, name)
    tried(name, partial(function, torch.sin, x, strict=True, vectorize=True))

with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.Autograd)):
    print(grad(torch.sin)(x), grad(grad(torch.sin))(x), vjp(torch.sin, x)[1](t))
    print(torch._C._dispatch_tls_local_exclude_set().has(DispatchKey.Autograd))


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos()


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2


for transform in (grad, grad_and_value, jacrev):
    tried(transform.__name__, lambda transform=transform: transform(Sine.apply)(x))
    print(transform(Cube.apply)(x), jacrev(jacrev(Cube.apply))(x))
print(torch.autograd.grad(Sine.apply(y := x.clone().requires_grad_()), y))

print(torch._is_all_true(torch.tensor([True, False])), torch._is_any_true(torch.tensor([False])))
print(torch.ones(2).__div__(4), torch.ones(2).__rdiv__(4), torch.ones(2).__idiv__(4))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.cpu.amp.autocast():
        print(torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype)
print([one.category.__name__ for one in caught])

torch.manual_seed(0)
query = torch.rand(2, 3, 4)
weights = torch.rand(12, 4), torch.rand(12), torch.rand(4, 4), torch.rand(4)
with torch.no_grad():
    for options in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        print(torch._native_multi_head_attention(query, query, query, 4, 2, *weights, **options))


class Total(torch._ops.HigherOrderOperator):
    def __init__(self):
        super().__init__("total")

    def __call__(self, *args):
        return super().__call__(*args)


total = Total()


@total.py_impl(DispatchKey.AutogradCPU)
def total_recorded(x):
    return x.sum()


print(total(torch.ones(3)), total(torch.ones(3, requires_grad=True)))

model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
warnings.simplefilter("ignore")
import functorch  # noqa: E402

made, params, buffers = functorch.make_functional_with_buffers(model)
print(type(made.stateless_model).__name__, made.param_names, made.buffer_names)
print(type(made).__name__, len(params), len(buffers))
made, params = functorch.make_functional(torch.nn.Linear(2, 1))
print(type(made.stateless_model).__name__, made.param_names, type(made).__name__)

enabled = torch._C._autograd._saved_tensors_hooks_is_enabled
with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
    print(enabled())
print(enabled())
print(functional._construct_standard_basis_for((torch.ones(2), torch.ones(1).double()), (2, 1)))


def wants(x):
    return x.requires_grad_().sin().sum()


def keeps(x):
    y = x.sin()
    y.retain_grad()
    return y.sum()


rows = torch.ones(2, 3)
for transform in (grad, torch.vmap, jacrev):
    tried("requires_grad_", partial(transform(wants), rows))
    tried("jacobian", partial(transform(lambda x: functional.jacobian(torch.sin, x)), rows))
tried("retain_grad", partial(grad(keeps), rows))
tried("plain", lambda: wants(rows.clone()))


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return grad


tried("setup_context", partial(torch.func.functionalize(Sine.apply), x))


class OfData(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * len(grad.nonzero())


print(jacrev(OfData.apply, chunk_size=1)(torch.ones(2)))
value, pull = vjp(lambda x: x.sin().sum(), rows)
print(pull(torch.tensor(2.0), True, True)[0].shape)
printed = []
torch.vmap(lambda x: printed.append(repr(x)) or x)(rows)
print(printed)
