"""Private names of PyTorch that libraries use: mapped files, compiler settings, batched tensors,
sparse types, gradient scaling, and conditions as functions."""

import os
import tempfile

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config
from torch._C._functorch import (
    _add_batch_dim,
    _remove_batch_dim,
    get_unwrapped,
    is_batchedtensor,
    maybe_get_level,
)
from torch._prims_common import DeviceLikeType
from torch.amp.autocast_mode import autocast
from torch.cuda.amp.common import amp_definitely_not_available
from torch.cuda.amp.grad_scaler import OptState
from torch.nn.parallel.scatter_gather import gather
from torch.utils._device import DeviceContext

# Files as storages: private and shared, parts of them, and tensors over them.
path = os.path.join(tempfile.mkdtemp(), "bytes")
with open(path, "wb") as file:
    file.write(bytes(range(40)))
whole = torch.UntypedStorage.from_file(path, False, 40)
part = whole[8:16]
bytes_of = torch.asarray(part, dtype=torch.uint8)
bytes_of[0] = 99
print(len(whole), whole[3], part.tolist(), whole[8], bytes_of.view(torch.int32))
with open(path, "rb") as file:
    print(file.read()[8])
shared = torch.UntypedStorage.from_file(path, True, 60)
shared[50] = 7
shared[1:3] = 5
print(os.path.getsize(path), torch.UntypedStorage.from_file(path, False, 60)[50], shared[2])
numbers = torch.from_file(path, shared=True, size=3, dtype=torch.int16)
numbers.fill_(258)
print(torch.from_file(path, size=8, dtype=torch.uint8), torch.from_file(path, size=0).shape)
for refused in (
    lambda: torch.UntypedStorage.from_file(path, False, 100),
    lambda: torch.from_file(path, size=1000),
    lambda: torch.UntypedStorage.from_file(path + "x", False, 1),
):
    try:
        refused()
    except (RuntimeError, OSError) as error:
        print(isinstance(error, RuntimeError) or isinstance(error, OSError))
kept = torch.arange(6.0).storage()
print(torch._utils._rebuild_tensor_v2(kept, 1, (2, 2), (2, 1), True, None))
print(torch.serialization.location_tag(kept.untyped()))

# Settings.
torch._inductor.config.triton.unique_kernel_names = True
torch._functorch.config.donated_buffer = False
print(torch._inductor.config.triton.unique_kernel_names)
with torch._dynamo.config.patch(suppress_errors=True):
    print(torch._dynamo.config.suppress_errors)


@torch._dynamo.config.patch("suppress_errors", True)
def suppressed():
    return torch._dynamo.config.suppress_errors


print(suppressed(), torch._dynamo.config.suppress_errors)

# Batches.
seen = []


def look(x):
    seen.append((is_batchedtensor(x), maybe_get_level(x), get_unwrapped(x).shape))
    return x * 2


print(torch.vmap(look)(torch.arange(6.0).view(2, 3)), seen[0])
print(maybe_get_level(torch.ones(2)), is_batchedtensor(torch.ones(2)))
print(callable(_add_batch_dim), callable(_remove_batch_dim))

# Types of sparse tensors.
where = torch.tensor([[0, 1, 1], [2, 0, 2]])
sparse = torch.sparse.FloatTensor(where, torch.tensor([3.0, 4.0, 5.0]), torch.Size([2, 3]))
print(sparse.to_dense(), isinstance(sparse, torch.sparse.FloatTensor))
print(torch.sparse.DoubleTensor(2, 3).to_dense(), isinstance(where, torch.sparse.LongTensor))

# What scales gradients.
gradients = [torch.tensor([2.0, 4.0]), torch.tensor([1.0, float("inf")])]
found = torch.zeros(1)
torch._amp_foreach_non_finite_check_and_unscale_(gradients[:1], found, torch.tensor(0.5))
print(gradients[0], found)
torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.tensor(0.5))
print(found)
scale, tracker = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32)
for inf in (0.0, 0.0, 0.0, 1.0):
    torch._amp_update_scale_(scale, tracker, torch.tensor(inf), 2.0, 0.25, 2)
    print(scale, tracker)

# Functions.
x = torch.arange(24.0).view(4, 2, 3)
print(torch.conv_tbc(x, torch.arange(18.0).view(2, 3, 3), torch.ones(3), 1))
print(torch.cond(torch.tensor(True), lambda a: a + 1, lambda a: a - 1, (torch.ones(2),)))
print(torch._C._nn.linear(torch.ones(1, 3), torch.ones(2, 3)), torch._C._has_mps)
print(torch.autograd._is_checkpoint_valid(), amp_definitely_not_available(), OptState.READY.name)
print(autocast is torch.autocast, callable(gather), issubclass(DeviceContext, object))
print(isinstance(torch.device("cpu"), torch.DeviceObjType), DeviceLikeType is not None)
