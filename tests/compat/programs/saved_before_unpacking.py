"""Hooks on single saved tensors of a node, what a backward keeps, names that are no longer used,
and what classes answer for memory and forms."""

import warnings

import torch
from torch._higher_order_ops.cond import cond_op

a = torch.tensor([1.0, 2.0], requires_grad=True)
y = a * a
raw = y.grad_fn._raw_saved_self
print(isinstance(raw, torch._C._autograd.SavedTensor), callable(cond_op))
raw.register_hooks(lambda x: 2 * x, lambda x: x)
print(y.grad_fn._saved_self, y.grad_fn._saved_other)
for hooks in ((lambda x: x, lambda x: x), (lambda x: x, 1)):
    try:
        raw.register_hooks(*hooks)
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__)
y.sum().backward()
print(a.grad)
try:
    raw.register_hooks(lambda x: x, lambda x: x)
except RuntimeError:
    print("freed")
print(hasattr(y.grad_fn, "_raw_saved_nothing"))

# Results are kept detached, and have their history again.
z = a.exp()
z.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)
print(z.grad_fn._saved_result.grad_fn is z.grad_fn)
indexed = torch.ones(2, 2, requires_grad=True)[:, torch.tensor([0, 1])]
print([isinstance(each, type(raw)) for each in indexed.grad_fn._raw_saved_indices])


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print(ctx.saved_variables[0].tolist(), len(said))
        print(torch._C._autograd._get_current_graph_task_keep_graph())
        return grad * 2


twice = Twice.apply(a)
saved = twice.grad_fn._raw_saved_tensors
saved[0].register_hooks(lambda x: x + 1, lambda x: x - 1)
print(len(saved), twice.grad_fn.saved_tensors)
try:
    saved[1].register_hooks(lambda x: x, lambda x: x)
except RuntimeError:
    print("None has no hooks")
twice.sum().backward(retain_graph=True)
twice.sum().backward()
try:
    print(twice.grad_fn._raw_saved_tensors)
except RuntimeError:
    print("freed")

# Gradients of which only some rows are there.
sparse = torch.sparse_coo_tensor([[0, 1], [2, 0]], [16.0, float("inf")], (2, 3))
for dtype in (torch.float32, torch.float16):
    parameter = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    for gradient in (sparse, sparse * 0.0 + sparse.to_dense().clamp(max=8).to_sparse()):
        parameter.grad = gradient.to(dtype).coalesce()
        found = scaler._unscale_grads_(
            optimizer, torch.full((1,), 0.25), torch.zeros(1), allow_fp16=True
        )
        print(found[parameter.device], parameter.grad.to_dense())

print(torch.cuda.is_tf32_supported(), torch._C.has_lapack)
memory = torch.UntypedStorage(4, device="meta")
try:
    memory[0]
except NotImplementedError:
    print("no memory")


class Asked(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print(func, args[1:])


strided = torch.Tensor._make_subclass(
    Asked, torch.ones(2, 2), dispatch_sizes_strides_policy="strides"
)
print(strided.is_contiguous(memory_format=torch.channels_last))
print(torch.ops.aten.is_strides_like_format.default(strided, torch.channels_last))
print(torch.ops.aten.is_non_overlapping_and_dense.default(strided))
sized = torch.Tensor._make_subclass(Asked, torch.ones(2), dispatch_sizes_strides_policy="sizes")
sized.data_ptr()
