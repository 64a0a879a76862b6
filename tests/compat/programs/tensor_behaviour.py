"""Attributes of tensors, subclasses, __torch_function__, and printed values."""

import copy
import gc
import io
import pickle
import weakref

import torch
from torch import nn
from torch.overrides import handle_torch_function, has_torch_function, is_tensor_like

# Attributes belong to the tensor, not to the object that Python happens to have for it.
x = torch.arange(3.0, requires_grad=True)
x.note = ["kept"]
y = x * x
print(x.note, hasattr(y, "note"), x.__dict__)
del x
gc.collect()
print(y.grad_fn._saved_self.note)
z = torch.ones(2)
z.itself = z
gone = weakref.ref(z)
del z
gc.collect()
print(gone() is None)
a = torch.ones(2)
a.name_of_it = "a"
print(copy.deepcopy(a).name_of_it, pickle.loads(pickle.dumps(a)).name_of_it)
del a.name_of_it
print(hasattr(a, "name_of_it"))
for i in range(200):
    t = torch.ones(1)
    if i % 2:
        t.tag = i
    assert getattr(t, "tag", i) == i and hasattr(t, "tag") == bool(i % 2)
try:
    a.shape = 3
except AttributeError:
    print("AttributeError")


# Subclasses survive operators.
class Labelled(torch.Tensor):
    pass


t = torch.arange(4.0).as_subclass(Labelled)
for value in (t + 1, 1 - t, t.sum(), torch.exp(t), t[1:], t.reshape(2, 2), -t, t > 1, t.clone()):
    print(type(value).__name__, value.tolist())
print([type(part).__name__ for part in t.chunk(2)], type(torch.cat([t, t])).__name__)
print(type(torch.max(t.reshape(2, 2), 1).values).__name__, type(nn.functional.relu(t)).__name__)
t += 1
print(type(t).__name__, type(torch.ones(4) + t).__name__, type(nn.Linear(4, 2)(t)).__name__)
print(
    type(nn.Parameter(torch.ones(2)) + 1).__name__, type(nn.Parameter(torch.ones(2)).data).__name__
)
with torch._C.DisableTorchFunctionSubclass():
    print(t.sum().item(), type(t + 1).__name__)


# A subclass that logs and changes answers.
class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


v = torch.ones(3).as_subclass(Logged)
(v.mul(2) + torch.ones(3)).sum()
torch.add(v, v, alpha=2)
print(Logged.calls, type(v * 2).__name__)

HANDLED = {}


def implements(function):
    def register(ours):
        HANDLED[function] = ours
        return ours

    return register


# No tensor at all, and yet an argument.
class Diagonal:
    def __init__(self, size, value):
        self.size, self.value = size, value

    def tensor(self):
        return self.value * torch.eye(self.size)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(t, (torch.Tensor, cls)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


@implements(torch.mean)
def mean(input):
    return float(input.value) / input.size


@implements(torch.matmul)
def matmul(left, right):
    left = left.tensor() if isinstance(left, Diagonal) else left
    return left @ (right.tensor() if isinstance(right, Diagonal) else right)


@implements(torch.stack)
def stack(values, dim=0):
    return [v.value for v in values]


d = Diagonal(2, 3)
print(torch.mean(d), torch.matmul(d, torch.ones(2, 1)), torch.stack([d, d]))
try:
    torch.add(d, 1)
except TypeError:
    print("TypeError")
print(is_tensor_like(d), is_tensor_like(1), has_torch_function((torch.ones(1), d)))
print(has_torch_function((torch.ones(1), nn.Parameter(torch.ones(1)), 2)), has_torch_function((t,)))


def double(value):
    if has_torch_function((value,)):
        return handle_torch_function(double, (value,), value)
    return value * 2


HANDLED[double] = lambda value: Diagonal(value.size, value.value * 2)
print(double(torch.ones(1)), double(d).value)

# Texts.
print(f"{torch.tensor(1.5)} {torch.tensor(2)} {torch.tensor(1.25):.1f} {torch.ones(2)}")
print(torch.float32, torch.Size([1, 2]), torch.ones(2, 3).shape, torch.strided, torch.device("cpu"))
print(repr(torch.int8), str(torch.bfloat16), torch.channels_last, torch.ones(1).dtype)
print(torch.ones(2, dtype=torch.int16), torch.ones(1, dtype=torch.float64))
print(str(torch.float16).split(".")[1], torch.float64 == torch.double)
buffer = io.BytesIO()
torch.save(t, buffer)
print(len(buffer.getvalue()) > 100)

# The parts of complex numbers can be written.
z = torch.tensor([[1 + 2j, 3 - 4j], [5j, 6 + 0j]])
z.real = torch.tensor([[7.0, 8.0], [9.0, 10.0]])
z[..., 0].imag = 0.0
z[1].imag = torch.tensor(-1)
print(z)
r = torch.ones(2)
r.real = torch.tensor([3.0, 4.0])
print(r)
w = torch.ones(2, requires_grad=True)
c = torch.complex(w * 2, w * 3)
c.imag = w * w
(c * c.conj()).real.sum().backward()
print(w.grad)
for wrong in (
    lambda: setattr(r, "imag", 1.0),
    lambda: setattr(z, "real", torch.ones(3)),
    lambda: setattr(z, "imag", None),
):
    try:
        wrong()
        print("no error")
    except (RuntimeError, TypeError):
        print("refused")

for dtype in (torch.float32, torch.int16, torch.bool, torch.complex64):
    print(torch.ones(2).to(dtype).storage_type().__name__)
print(torch.arange(6).view(2, 3).roll(1, dims=None))
half = torch.tensor([1 + 2j, 0, 3]).to(torch.complex32)
print(half * 100000, 100000 * half, 2.5 * half)
print(half.any(), half.all(), half.count_nonzero(), (half * 0).any(0), torch.all(half, 0))
print(torch.arange(3.0)._neg_view(), torch.UntypedStorage(4).filename)
for wrong in (
    lambda: torch.zeros(2).new(torch.zeros(2, dtype=torch.int32)),
    lambda: torch.zeros(2).new(torch.zeros(2, dtype=torch.int32).storage()),
    lambda: torch.zeros(2).map2_(torch.ones(2), torch.ones(2, requires_grad=True), max),
    lambda: torch.library.impl("nothing::here", "somewhere"),
    lambda: torch.nn.functional.margin_ranking_loss(*(torch.ones(2, 2),) * 2, torch.ones(2)),
):
    try:
        wrong()
    except (RuntimeError, TypeError) as error:
        print("refused", type(error).__name__)
print(torch.margin_ranking_loss(torch.ones(2, 2), torch.zeros(2, 2), torch.ones(2), 0.5, 1))


class Unscales(torch.optim.Optimizer):
    _step_supports_amp_scaling = True

    def step(self, closure=None):
        print(self.grad_scale, self.found_inf, self.param_groups[0]["params"][0].grad)


weight = torch.ones(2, requires_grad=True)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
optimizer = Unscales([weight], {})
for factor in (1.0, float("inf")):
    weight.grad = None
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    print(hasattr(optimizer, "grad_scale"))
    scaler.update()
    print(scaler.get_scale())

# Programs replace the scaler's method to allow gradients of float16.
half = torch.ones(2, dtype=torch.float16, requires_grad=True)
halves = torch.amp.GradScaler("cpu", init_scale=4.0)
unscale = halves._unscale_grads_
halves._unscale_grads_ = lambda optimizer, scale, found, _: unscale(optimizer, scale, found, True)
halves.scale((half * 3).sum()).backward()
halves.unscale_(torch.optim.SGD([half], lr=0.1))
print(half.grad)
