"""Names around the operators, and deprecated members of tensors."""

import io
import warnings

import torch
import torch.backends.cudnn as cudnn
import torch.multiprocessing
import torch.utils.benchmark
from torch import nn
from torch.autograd import Variable, gradcheck
from torch.autograd.gradcheck import gradcheck as gradcheck_of_the_module
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DataParallel
from torch.testing import assert_close, make_tensor

warnings.simplefilter("ignore")
torch.manual_seed(0)


def fails(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "no error"


print(gradcheck is gradcheck_of_the_module is torch.autograd.gradcheck, callable(gradcheck))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(device, torch.cuda.device_count(), torch.backends.mps.is_available())
print(callable(cudnn.is_available))
print(torch.accelerator.is_available(), torch.xpu.is_available(), torch.mps.is_available())
cudnn.benchmark, cudnn.deterministic = False, True
torch.backends.cuda.matmul.allow_tf32 = True
torch.use_deterministic_algorithms(True)
print(torch.are_deterministic_algorithms_enabled(), torch.get_deterministic_debug_mode())
torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("high")
print(torch.get_float32_matmul_precision(), torch.get_default_device(), cudnn.deterministic)
torch.cuda.manual_seed_all(1)
torch.cuda.empty_cache()
print(torch.cuda.memory_allocated(), fails(torch.cuda.FloatTensor, [1.0]))
print(torch.__version__.split("+")[0], torch.version.cuda)

# Types of tensors.
print(torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape, torch.DoubleTensor([1]).dtype)
print(torch.BoolTensor([True]).dtype, torch.ByteTensor([3]) + 1, torch.IntTensor().shape)
x = torch.arange(4.0)
print(isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), x.type())
print(x.type("torch.DoubleTensor").dtype, x.type(torch.LongTensor).type(), x.long().type())
print(isinstance(x, torch.cuda.FloatTensor), fails(x.type, "torch.NoTensor"))
torch.set_default_tensor_type("torch.DoubleTensor")
print(torch.ones(1).dtype)
torch.set_default_tensor_type(torch.FloatTensor)
print(torch.ones(1).dtype)

# Members of before.
print(x.new([1, 2]), x.new(2, 3).shape, x.new().shape, x.new_tensor([1, 2]), x.new_tensor(3))
print(x.is_sparse, x.is_cuda, x.is_quantized, x.is_nested, x.is_mkldnn, x.is_pinned())
print(x.clone().apply_(lambda v: v * 2), x.clone().map_(x + 1, lambda a, b: a * b))
print(torch.zeros(3, 3).fill_diagonal_(2), torch.zeros(7, 2).fill_diagonal_(1, wrap=True))
print(torch.zeros(2, 2, 2).fill_diagonal_(3).sum(), x.is_same_size(x + 1), x.to_dense() is x)
print(f"{x.sum()} {x.sum():.2f} {x[1]:5.1f}", x.share_memory_() is x, x.dim_order())
print(torch.is_nonzero(x[1]), torch.vander(x[:3]), torch.is_same_size(x, x))
v = Variable(torch.ones(2), requires_grad=True)
(v * v).sum().backward()
print(v.grad, isinstance(v, Variable), v.data, Variable(x) is not None)

# Checks and comparisons.
torch._check(True)
for check in (torch._check, torch._check_index, torch._check_value, torch._check_type):
    print(fails(check, False, lambda: "no"))
print(fails(torch._check, 1), fails(torch._check_tensor_all, x > 0), fails(torch._assert, 0, "no"))
assert_close(x, x + 1e-7)
assert_close({"a": [x, 1]}, {"a": [x + 1e-6, 1]})
assert_close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
for pair in (
    (x, x + 1e-3),
    (x, x.double()),
    (x, x[:2]),
    ([x], [x, x]),
    (1.0, 1.1),
    ({1: x}, {2: x}),
):
    print(fails(assert_close, *pair))
assert_close(x, x + 0.5, rtol=0, atol=0.6)
print(
    make_tensor(2, 3, dtype=torch.int64, device="cpu", low=2, high=4).unique(),
    make_tensor((2,), dtype=torch.complex64, device="cpu").shape,
)

# Wrappers of modules and functions.
model = nn.Linear(2, 1)
parallel = DataParallel(model)
print(list(parallel.state_dict()), torch.equal(parallel(torch.ones(1, 2)), model(torch.ones(1, 2))))
print(isinstance(nn.DataParallel(model).module, nn.Linear))


@torch.jit.ignore
def ignored(a):
    return a


@torch.jit.unused
def unused(a):
    return a + 1


@torch.compiler.disable
def plain(a):
    return a * 2


print(torch.jit.is_scripting(), ignored(1), unused(1), plain(3), torch.compiler.is_compiling())
traced = torch.jit.trace(lambda a: (a * 2).relu(), torch.ones(2))
print(traced(torch.tensor([-1.0, 3.0])), traced(torch.tensor([[4.0]])))
traced = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval(), torch.ones(3, 2))
print(traced(torch.ones(1, 2)).shape, list(traced.state_dict()))
file = io.BytesIO()
torch.jit.save(traced, file)
file.seek(0)
loaded = torch.jit.load(file, map_location="cpu").eval()
print(torch.equal(loaded(torch.ones(3, 2)), traced(torch.ones(3, 2))))

# The scaling of losses.
scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for factor in (1.0, 1.0, float("inf"), 1.0):
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(3, 2)).sum() * factor).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale(), model.weight.detach(), model.bias.detach())
print(sorted(scaler.state_dict()), fails(scaler.update))
disabled = GradScaler()
with autocast(enabled=False):
    disabled.scale(model(torch.ones(1, 2)).sum()).backward()
disabled.step(optimizer)
disabled.update()
print(disabled.get_scale(), disabled.is_enabled(), model.weight.detach())

# Random numbers.
torch.manual_seed(1)
with torch.random.fork_rng():
    torch.manual_seed(7)
    print(torch.rand(2))
print(torch.rand(2))
timer = torch.utils.benchmark.Timer("x + 1", globals={"x": x})
print(timer.timeit(10).median > 0, timer.blocked_autorange(min_run_time=0.01).mean > 0)
print(torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)), torch.hub.get_dir()[-3:])
print(torch.is_tensor(x), torch.is_storage(x.storage()) or True, torch.typename(x))
