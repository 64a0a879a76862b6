"""torch._custom_ops, registrations of torch.library that replace others, and defaults of custom
operators."""

import torch
import torch._custom_ops as ops
from torch import Tensor
from torch._custom_op import impl as inner


def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except (RuntimeError, ValueError, NotImplementedError, AssertionError) as error:
        return type(error).__name__
    return "taken"


@ops.custom_op("older::scaled")
def scaled(x: Tensor, by: float) -> Tensor:
    raise NotImplementedError


call = torch.ops.older.scaled.default
print(refused(call, torch.ones(2), 3.0))


@ops.impl("older::scaled")
def scaled_impl(x, by):
    return x * by


print(call(torch.ones(2), 3.0))
x = torch.ones(2, requires_grad=True)
print(refused(call, x, 3.0))


@ops.impl_save_for_backward("older::scaled")
def save(inputs, output):
    print(inputs._fields)
    return [inputs.x, inputs.by]


@ops.impl_backward("older::scaled")
def backward(ctx, saved, grad):
    return {"x": grad * saved[1]}


print(torch.autograd.grad(call(x, 3.0).sum(), x))
print(
    refused(ops.impl("older::scaled"), scaled_impl),
    refused(ops.impl, "older::scaled", device_types="hip"),
)
print(refused(ops.custom_op, "aten::mine", "(Tensor x) -> Tensor"))
print(refused(ops.custom_op, "older::mine.Tensor", "(Tensor x) -> Tensor"))
print(refused(ops.custom_op, "older::mine", "(Tensor(a) x) -> Tensor(a)"))
print(refused(ops.custom_op, "older::mine", "("), refused(inner.get_op, "older::none"))
print(refused(inner.CustomOp, 1, 2, 3, 4, 5))
ops.custom_op("older::pair", "(Tensor x) -> (Tensor, Tensor)")
ops.impl("older::pair", func=lambda x: (x.clone(), x * 2))
ops.impl_save_for_backward("older::pair", func=lambda inputs, output: [])
ops.impl_backward("older::pair", [False, True], func=lambda ctx, saved, a, b: {"x": b * 2})
print([each.requires_grad for each in torch.ops.older.pair(x)])
ops._destroy("older::pair")
print(hasattr(torch.ops.older, "other"), refused(inner.get_op, "older::other"))

# Later registrations replace earlier ones.
for factor in (2, 3):

    @torch.library.custom_op("older::times", mutates_args=())
    def times(x: Tensor, on: torch.device = torch.device("cpu")) -> Tensor:
        return x * 2

    for again in (factor, factor + 1):
        torch.library.register_autograd("older::times", lambda ctx, g, by=again: (g * by, None))
        torch.library.register_vmap(
            "older::times", lambda info, dims, x, *rest, by=again: (x * by, 0)
        )
    y = torch.ones(2, requires_grad=True)
    times(y).sum().backward()
    print(times(y).tolist(), y.grad, torch.vmap(times)(torch.ones(2, 1)).tolist())
print(torch.library.infer_schema(times._init_fn, mutates_args=()))
with torch.library._scoped_library("older", "FRAGMENT") as lib:
    lib.define("shifted(Tensor x, int n=2, *, int m=3) -> Tensor")
    lib.impl("shifted", lambda x, n=2, *, m=3: x * n * m, "CPU")
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((len(inputs), keyword_only_inputs))

    torch.library.register_autograd(
        "older::shifted", lambda ctx, g: g * 6, setup_context=setup, lib=lib
    )
    torch.ops.older.shifted(y).sum().backward()
    print(seen, y.grad)
    torch.library.register_fake(
        "older::shifted", lambda x, n=2, *, m=3: x.new_empty(x.shape), lib=lib
    )
    print(torch.ops.older.shifted(torch.ones(2, device="meta")).shape)
    print(refused(torch.library.register_fake, "older::shifted", lambda x: x, lib=lib))


@torch.library.triton_op("older::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    return x * 2


print(doubled(torch.ones(2)))
print(refused(torch.library.define, "shifted", "(Tensor x) -> Tensor"))
print(refused(torch.library.define, "older::f", "f(Tensor x) -> Tensor"))
