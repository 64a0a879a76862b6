"""Selective checkpoints, and causal masks with fewer queries than keys."""

import functools

import torch
import torch._logging
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

torch._logging.set_logs(graph_code=True)
product = torch.ops.aten.mm.default


class Counting(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Counting.count += func is product
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
weight = torch.randn(4, 4, requires_grad=True)
x = torch.randn(3, 4, requires_grad=True)


def layers(x):
    return torch.sin(torch.mm(torch.cos(torch.mm(x, weight)), weight))


def policy(context, operator, *args, **kwargs):
    seen.add(context.is_recompute)
    if operator is product:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


seen = set()
for kept in (None, [product], policy, lambda context, operator, *rest: operator is product):
    weight.grad = x.grad = None
    Counting.count = 0
    options = {}
    if kept is not None:
        make = functools.partial(create_selective_checkpoint_contexts, kept)
        options["context_fn"] = make
    with Counting():
        y = checkpoint(layers, x, use_reentrant=False, **options)
        forward = Counting.count
        y.sum().backward()
    print(forward, Counting.count, weight.grad.norm(), x.grad.norm(), len(seen))


def writes(x):
    y = torch.mm(x, weight)
    return y.sin_() * torch.cos(y)


for mutation in (True, False):
    make = functools.partial(
        create_selective_checkpoint_contexts, [product], allow_cache_entry_mutation=mutation
    )
    try:
        checkpoint(writes, x, use_reentrant=False, context_fn=make).sum().backward()
        print("done", x.grad.norm().isfinite())
    except RuntimeError:
        print("refused")
try:
    create_selective_checkpoint_contexts(3)
except TypeError:
    print("refused")

queries, keys = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
for bias in (causal_upper_left(3, 5), causal_lower_right(3, 5)):
    print(bias, type(bias).__name__, bias.variant, bias.seq_len_q, bias.seq_len_kv)
    print(F.scaled_dot_product_attention(queries, keys, keys, attn_mask=bias))

for wrong in ([2], [torch.ops.aten.sin]):
    try:
        create_selective_checkpoint_contexts(wrong)
    except ValueError:
        print("refused")


@torch.library.custom_op("selected::with_number", mutates_args=())
def with_number(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    Counting.count += 1
    return torch.sin(x), 3


with_number.register_autograd(
    lambda ctx, grad, _: grad * ctx.saved_tensors[0].cos(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)
Counting.count = 0
make = functools.partial(
    create_selective_checkpoint_contexts, [torch.ops.selected.with_number.default]
)
z = torch.ones(3, requires_grad=True)
made = checkpoint(
    lambda x: (with_number(x)[0] * x.sin().exp()).sin(), z, use_reentrant=False, context_fn=make
)
print(torch.autograd.grad(made.sum(), z), Counting.count)
