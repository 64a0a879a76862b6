"""Names that few programs use: versions, windows, storages, settings. The output is the same with
both."""

import collections

import torch
import torch.signal
import torch.utils._pytree as pytree
from torch import nn
from torch.nn import _reduction
from torch.nn.modules.conv import LazyConv2d
from torch.nn.modules.pooling import MaxUnpool2d
from torch.signal import windows
from torch.torch_version import TorchVersion

# Versions are compared as versions.
print(torch.__version__ >= "2.9", torch.__version__ > (1, 10), torch.__version__ < "10")
version = TorchVersion("2.1.0a0+git")
print(version < "2.1", version == "2.1.0a0", version >= (2, 0, 9), version != "2.0", str(version))
print(TorchVersion("2.0") == "2.0.0", TorchVersion("2.0") == "Unknown")
print(TorchVersion("2.0rc1") < "2.0", TorchVersion("2.0.dev3") < "2.0a1", version < "2.1.0a1")

# Windows.
for name in sorted(windows.__all__):
    options = {"general_cosine": {"a": [0.4, 0.5, 0.1]}}.get(name, {})
    for size in (0, 1, 2, 7):
        for sym in (True, False):
            made = getattr(windows, name)(size, sym=sym, dtype=torch.float64, **options)
            print(name, size, sym, [f"{value:.5f}" for value in made.tolist()])
print(windows.exponential(4, center=1.0, tau=2.0, sym=False).dtype)
for mistake in (
    lambda: windows.hann(-1),
    lambda: windows.gaussian(3, std=0.0),
    lambda: windows.exponential(3, center=1.0),
    lambda: windows.hann(3, dtype=torch.int64),
):
    try:
        mistake()
    except Exception as error:
        print(type(error).__name__)

# Storages in elements.
x = torch.arange(6.0).reshape(2, 3)
storage = x.storage()
print(len(storage), storage.tolist(), storage[1], list(storage)[-1], storage.dtype)
storage[0] = 7.0
y = torch.empty(0).set_(storage, 1, (2, 2), (3, 1))
print(x[0], y, y.storage().data_ptr() == storage.data_ptr())
print(torch.empty(0).set_(x.untyped_storage(), 0, (3,), (2,)), torch.FloatTensor(storage))
print(isinstance(storage, torch.TypedStorage), storage.clone().fill_(2.0).tolist())

# Python's types as dtypes.
for kind in (float, int, bool, complex):
    print(torch.zeros(1, dtype=kind).dtype, torch.ones(1).to(kind).dtype)
print(torch.arange(3, dtype=float).dtype)

# Members of tensors and modules.
print(x.sparse_dim(), x.dense_dim(), list(reversed(torch.arange(3))), reversed(x))
print(torch.nn.Linear(1, 1).call_super_init, LazyConv2d(1, 1), MaxUnpool2d(2))
print(_reduction.get_enum("sum"), _reduction.legacy_get_string(None, False))
net = torch.nn.utils.convert_conv2d_weight_memory_format(
    torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3)), torch.channels_last
)
print(net[0].weight.is_contiguous(memory_format=torch.channels_last))

# Switches.
torch.__future__.set_swap_module_params_on_conversion(True)
print(torch.__future__.get_swap_module_params_on_conversion())
torch.__future__.set_swap_module_params_on_conversion(False)
with torch.autograd.set_multithreading_enabled(False), torch.compiler.set_stance("force_eager"):
    print(torch.ones(1, requires_grad=True).sum().item())
with torch.sparse.check_sparse_tensor_invariants():
    print(torch.sparse.check_sparse_tensor_invariants.is_enabled())

# Nests.
tree = {"a": (1, 2.5), "b": [3]}
print(pytree.tree_all_only(int, lambda v: v > 0, tree))
print(pytree.tree_any_only(int, lambda v: v > 3, tree))
print(
    pytree.is_namedtuple(collections.namedtuple("Pair", "a b")(1, 2)),
    pytree.is_namedtuple_class(torch.Size),
)

# Indices that are no indices, numbers of several elements.
for mistake in (lambda: x[0.5], lambda: int(x), lambda: float(x), lambda: x.item()):
    try:
        mistake()
    except Exception as error:
        print(type(error).__name__)


# An example after the last one ends a loop over joined data sets.
print(list(torch.utils.data.ConcatDataset([[1, 2], [3]])))

# Lists of tensors, with numbers for each.


def lists():
    return [torch.tensor([1.0, 2.0]), torch.tensor([0.5])]


for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "clamp_min"):
    for other in ([2.0, 3.0], 2.0, lists()):
        made = lists()
        getattr(torch, f"_foreach_{name}_")(made, other)
        print(name, made, getattr(torch, f"_foreach_{name}")(lists(), other))
for name in ("addcmul", "addcdiv"):
    for value in ([2.0, 3.0], torch.tensor([2.0, 3.0]), 2.0):
        made = lists()
        extra = (value,) if not isinstance(value, float) else ()
        getattr(torch, f"_foreach_{name}_")(made, lists(), lists(), *extra)
        print(name, made)
for weight in (0.5, [0.5, 0.25], lists()):
    made = lists()
    torch._foreach_lerp_(made, [x + 1 for x in lists()], weight)
    print(made)
print(torch._foreach_pow(2.0, lists()), torch._foreach_max(lists()), torch._foreach_clone(lists()))

# Floating-point operations, by module.
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))

    def forward(self, x):
        return self.head(self.image(x))


counted = TwoLayers()
for image in (torch.ones(2, 3, 4, 4), torch.ones(2, 3, 4, 4, requires_grad=True)):
    with FlopCounterMode(display=False) as counter:
        torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        nn.functional.conv_transpose2d(image, torch.ones(3, 2, 2, 2), stride=2)
        counted(image).sum().backward()
    counts = counter.get_flop_counts()
    print(counter.get_total_flops(), sorted((n, sum(c.values())) for n, c in counts.items()))
