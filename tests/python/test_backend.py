"""An out-of-tree backend: its devices, memory, streams and the fallback to the CPU."""

import copy
import ctypes
import os
import pickle
import subprocess
import sys

import pytest
import sim_backend
from build_tree import ROOT, check_needs_only_the_c_abi, run
from in_threads import in_threads

import lamella


@pytest.fixture(scope="module", autouse=True)
def devices():
    sim_backend.load()


def error_of(function, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        function()
    return str(caught.value)


# ---- Devices and names ---------------------------------------------------------------------------


def test_names():
    device = lamella.device("sim:1")
    assert str(device) == "sim:1" and repr(device) == "device(type='sim', index=1)"
    assert lamella.device("privateuseone:1") == device
    assert repr(lamella.empty(2, device="sim:1").fill_(2)) == "tensor([2., 2.], device='sim:1')"
    lamella.utils.rename_privateuse1_backend("sim")
    assert error_of(lambda: lamella.utils.rename_privateuse1_backend("other")) == (
        "rename_privateuse1_backend: expected a device type without a name, got privateuseone, "
        "which is called 'sim'"
    )
    assert error_of(lambda: lamella.utils.rename_backend("privateuse9", "cuda")) == (
        "rename_privateuse1_backend: expected a 'name' that no device type has, got 'cuda'"
    )
    assert error_of(lambda: lamella.utils.rename_backend("privateuse9", "Big")) == (
        "rename_privateuse1_backend: expected 'name' to be lower-case letters, digits and _, "
        "got 'Big'"
    )
    assert error_of(lambda: lamella.device("simulator")) == (
        "Device: expected a device like 'cpu' or 'cuda:1', got 'simulator'"
    )


def test_the_module_of_a_device_type():
    assert lamella.sim.device_count() == 2 and lamella.sim.is_available()
    assert lamella.get_device_module("sim:1") is lamella.sim
    assert lamella.sim.current_device() == 0
    with lamella.sim.device(1):
        assert lamella.sim.current_device() == 1
        assert str(lamella.empty(1, device="sim").device) == "sim:1"
        assert str(lamella.empty(1, device="sim:0").device) == "sim:0"
    assert lamella.sim.current_device() == 0
    assert error_of(lambda: lamella.sim.set_device(5)) == (
        "DeviceGuard: expected a device of sim from 0 to 1, got 5"
    )
    with pytest.raises(AttributeError, match="module 'lamella' has no attribute 'privateuse7'"):
        _ = lamella.privateuse7


def test_methods_of_the_name():
    lamella.utils.generate_methods_for_privateuse1_backend()
    x = lamella.ones(2).sim(1)
    assert x.is_sim and not x.cpu().is_sim and str(x.device) == "sim:1"
    model = lamella.nn.Linear(2, 2).sim()
    assert all(p.is_sim for p in model.parameters())


def test_current_devices_are_a_threads_own():
    seen = []
    with lamella.sim.device(1):
        in_threads(lambda: seen.append(lamella.sim.current_device()), 1)
    assert seen == [0]


def test_errors_of_factories():
    assert error_of(lambda: lamella.empty(2, device="sim:7")) == (
        "empty: expected a device of sim from 0 to 1, got 7"
    )
    assert error_of(lambda: lamella.empty(1 << 50, device="sim"), MemoryError) == (
        "empty: could not allocate 4503599627370496 bytes on sim:0"
    )
    assert error_of(lambda: lamella.empty(1, device="privateuse9"), NotImplementedError) == (
        "empty: expected a device with an allocator, got privateuse9"
    )
    assert error_of(lambda: lamella.Generator(device="privateuse9")) == (
        "Generator: expected cpu or a device of a backend that is loaded, got privateuse9:0"
    )


# ---- Memory --------------------------------------------------------------------------------------


def test_transfers():
    x = lamella.randn(3, 4)
    y = x.to("sim")
    assert y.device == lamella.device("sim:0") and lamella.equal(y.cpu(), x)
    assert y.to("sim") is y and y.to("sim:0") is y
    z = y.to("sim:1")
    assert str(z.device) == "sim:1" and lamella.equal(z.cpu(), x)
    assert str(z.to("sim").device) == "sim:0"  # the current one
    assert lamella.equal(x.t().to("sim").cpu(), x.t()) and x.t().to("sim").stride() == (1, 4)
    assert lamella.equal(y.to(lamella.float64).cpu(), x.double())
    target = lamella.zeros(4, 3)
    target.t().copy_(y)
    assert lamella.equal(target, x.t().contiguous())
    z[:, 1::2].copy_(lamella.ones(3, 2))
    assert z.sum().item() == pytest.approx(x[:, ::2].sum().item() + 6, rel=1e-5)
    assert lamella.tensor([1.5], device="sim:1").item() == 1.5


def test_memory_is_out_of_reach():
    program = (
        "import sys, ctypes, lamella; lamella.load_library(sys.argv[1]);"
        "x = lamella.ones(4, device='sim'); ctypes.c_float.from_address(x.data_ptr()).value"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sim_backend.library()], capture_output=True, check=False
    )
    assert done.returncode < 0  # by a signal
    x = lamella.ones(4, device="sim")
    assert error_of(x.numpy, BufferError) == "buffer: expected a tensor on cpu, got sim"


def test_views_are_of_the_devices_memory():
    x = lamella.arange(12.0, device="sim").reshape(3, 4)
    for view, offset in [(x[1], 16), (x.t(), 0), (x[:, 2:], 8), (x.view(4, 3)[1], 12)]:
        assert view.data_ptr() == x.data_ptr() + offset and view._base is not None
    x[:, 1].mul_(10)
    assert x.t()[1].tolist() == [10.0, 50.0, 90.0]
    assert lamella.unbind(x)[2].tolist() == [8.0, 90.0, 10.0, 11.0]
    before = x._version
    x.t()[0].exp_()
    assert x._version == before + 1


def test_copies_and_pickles():
    x = lamella.arange(4.0, device="sim:1")
    assert pickle.loads(pickle.dumps(x)).device == x.device
    assert copy.deepcopy(x).tolist() == x.tolist() and copy.deepcopy(x).device == x.device
    x.resize_(100)
    assert x[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    y = lamella.empty(0, device="sim")
    y.set_(x.to("sim"))
    assert y.numel() == 100


def test_tensors_outlive_their_backend():
    program = (
        "import sys, lamella; lib = lamella.load_library(sys.argv[1]);"
        "x = lamella.ones(4, device='sim'); lib.unload();\n"
        "try: x + 1\n"
        "except NotImplementedError as e: print(str(e).splitlines()[0])\n"
        "try: lamella.empty(3, device='sim')\n"
        "except NotImplementedError as e: print(e)\n"
        "lib = lamella.load_library(sys.argv[1]); print(lamella.ones(2, device='sim:1') + 1)\n"
        "del x; print('done')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sim_backend.library()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second, *rest = done.stdout.splitlines()
    assert first.startswith("add: ") or "add" in first
    assert second == "empty: expected a device with an allocator, got sim"
    assert rest == ["tensor([2., 2.], device='sim:1')", "done"]


# ---- The fallback --------------------------------------------------------------------------------


def test_writes_come_back():
    x = lamella.arange(6.0, device="sim")
    out = lamella.empty(0, device="sim")
    assert lamella.exp(x[:3], out=out) is out
    assert lamella.equal(out.cpu(), x[:3].cpu().exp())
    values, indices = (
        lamella.empty(0, device="sim"),
        lamella.empty(0, device="sim", dtype=lamella.int64),
    )
    lamella.topk(x, 2, out=(values, indices))
    assert values.tolist() == [5.0, 4.0] and indices.tolist() == [5, 4]
    assert x[1::2].sigmoid_().data_ptr() == x.data_ptr() + 4
    assert x.tolist()[::2] == [0.0, 2.0, 4.0]
    running = lamella.zeros(3, device="sim")
    lamella.nn.functional.batch_norm(
        lamella.ones(2, 3, device="sim"), running, lamella.ones(3, device="sim"), training=True
    )
    assert running.tolist() == pytest.approx([0.1] * 3)


def test_arguments_that_overlap():
    x = lamella.arange(6.0)
    y = x.to("sim")
    y[1:].copy_(y[:-1])
    x[1:].copy_(x[:-1])
    assert lamella.equal(y.cpu(), x)
    there = error_of(lambda: lamella.ones(1, device="sim").expand(3).exp_())
    assert there == error_of(lambda: lamella.ones(1).expand(3).exp_())


def test_lists_numbers_and_indices():
    x = lamella.arange(12.0).reshape(3, 4)
    y = x.to("sim")
    assert lamella.equal(lamella.cat([y, y.t().reshape(3, 4)]).cpu(),
                         lamella.cat([x, x.t().reshape(3, 4)]))  # fmt: skip
    assert [str(t.device) for t in y.split([1, 2])] == ["sim:0"] * 2
    assert lamella.equal((y / lamella.tensor(2.0)).cpu(), x / 2)
    assert lamella.equal(y[lamella.tensor([2, 0])].cpu(), x[lamella.tensor([2, 0])])
    y[lamella.tensor([0]), 1] = 5
    assert y[0, 1].item() == 5 and y.max().item() == 11 and bool((y >= 0).all())


def test_mixed_devices():
    x, y = lamella.ones(2, 2), lamella.ones(2, 2, device="sim")
    z = lamella.ones(2, 2, device="sim:1")
    assert error_of(lambda: y / x) == (
        "div: expected all tensors to be on one device, got 'self' on sim:0 and 'other' on cpu"
    )
    assert error_of(lambda: y + z) == (
        "add: expected all tensors to be on one device, got 'self' on sim:0 and 'other' on sim:1"
    )
    assert error_of(lambda: lamella.exp(x, out=y)) == (
        "exp: expected all tensors to be on one device, got 'self' on cpu and 'out' on sim:0"
    )
    assert error_of(lambda: lamella.stack([y, x])) == (
        "stack: expected all tensors to be on one device, got 'tensors' on sim:0 and "
        "'tensors' on cpu"
    )


def test_operators_of_others():
    """The fallback serves an operator that only has a kernel for the CPU."""
    library = lamella.library.Library("simtest", "DEF")
    library.define("twice_and_count(Tensor(a!) x, Tensor[] more) -> (Tensor(a!), int, Tensor)")

    def kernel(x, more):
        x.mul_(2)
        return x, len(more), sum(more[1:], more[0])

    library.impl("twice_and_count", kernel, "CPU")
    x = lamella.ones(2, device="sim")
    same, count, total = lamella.ops.simtest.twice_and_count(x, [x, x.clone()])
    assert same is x and count == 2 and x.tolist() == [2.0, 2.0]
    assert total.tolist() == [3.0, 3.0] and str(total.device) == "sim:0"
    library.define("lost(Tensor x) -> Tensor")
    text = error_of(lambda: lamella.ops.simtest.lost(x), NotImplementedError)
    assert "simtest::lost" in text
    library.close()


def test_generators():
    here = lamella.Generator().manual_seed(3)
    there = lamella.Generator(device="sim:1").manual_seed(3)
    assert str(there.device) == "sim:1"
    x = lamella.rand(5, generator=there, device="sim:1")
    assert lamella.equal(x.cpu(), lamella.rand(5, generator=here))
    y = lamella.rand(5, generator=there, device="sim:1")  # goes on where it was
    assert lamella.equal(y.cpu(), lamella.rand(5, generator=here))
    lamella.manual_seed(7)
    assert lamella.sim._generator().initial_seed() == 7
    lamella.sim.manual_seed(8)
    assert lamella.sim._generator(0).initial_seed() == 8
    assert lamella.sim._generator(1).initial_seed() == 7


# ---- Streams -------------------------------------------------------------------------------------


def test_streams_and_events():
    stream, other = lamella.sim.Stream(), lamella.Stream("sim:0")
    assert stream != other and stream == lamella.Stream("sim", stream_id=stream.stream_id)
    assert lamella.sim.current_stream() == lamella.sim.default_stream()
    with stream:
        assert lamella.sim.current_stream() == stream
        x = lamella.ones(1000).to("sim", non_blocking=True)
        for _ in range(50):
            x = x + 1
    other.wait_stream(stream)
    with other:
        y = x * 2
    other.synchronize()
    assert other.query() and y.cpu().sum().item() == 102_000
    start, end = (lamella.sim.Event(enable_timing=True) for _ in range(2))
    assert start.query()
    start.record()
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    assert error_of(lambda: lamella.Stream("sim", stream_id=99).synchronize()) == (
        "Stream: expected a stream of sim:0, got number 99"
    )
    assert error_of(lambda: lamella.Stream("cpu"), NotImplementedError) == (
        "Stream: expected a backend with streams, got cpu"
    )


def test_work_is_asynchronous():
    program = (
        "import sys, time, lamella; lamella.load_library(sys.argv[1]);"
        "x = lamella.ones(4, device='sim'); lamella.sim.synchronize(); t = time.perf_counter();\n"
        "y = (x + x) * x\n"
        "print(time.perf_counter() - t < 0.02, lamella.sim.current_stream().query(), y.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, sim_backend.library()],
        capture_output=True, text=True, check=False, env={**os.environ, "SIM_DELAY_US": "30000"},
    )  # fmt: skip
    assert done.stdout.split(maxsplit=2) == ["True", "False", "[2.0, 2.0, 2.0, 2.0]\n"], done.stderr


# ---- Layers --------------------------------------------------------------------------------------


def test_backward():
    def run(place):
        x = lamella.linspace(-1, 1, 12).reshape(3, 4).to(place)
        w = lamella.linspace(0, 1, 8).reshape(4, 2).to(place).requires_grad_()
        b = lamella.zeros(2, device=place, requires_grad=True)
        loss = lamella.nn.functional.cross_entropy(
            (x @ w + b).relu(), lamella.tensor([0, 1, 1], device=place)
        )
        (g,) = lamella.autograd.grad(loss, w, create_graph=True)
        (loss + (g * g).sum()).backward()
        return w.grad, b.grad

    for mine, theirs in zip(run("sim:1"), run("cpu")):
        assert str(mine.device) == "sim:1" and lamella.allclose(mine.cpu(), theirs)


def test_backward_across_devices():
    x = lamella.ones(3, requires_grad=True)
    (x.to("sim") * 2).to("sim:1").cpu().sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and x.grad.device.type == "cpu"


def test_writes_of_saved_tensors_are_noticed():
    x = lamella.ones(3, device="sim", requires_grad=True)
    y = x.exp()
    y.add_(1)
    assert "exp" in error_of(y.sum().backward)


def test_vmap():
    x = lamella.randn(4, 3)

    def function(row):
        return (row * row).sum() + row.exp()

    got = lamella.vmap(function)(x.to("sim"))
    assert str(got.device) == "sim:0"
    assert lamella.allclose(got.cpu(), lamella.vmap(function)(x))


# ---- Many backends -------------------------------------------------------------------------------


def test_sixteen_named_backends():
    library = ctypes.CDLL(sim_backend.library())
    library.sim_add_backend.restype = ctypes.c_char_p
    for number in range(2, 17):
        assert library.sim_add_backend(19 + number, f"sim{number}".encode()) is None
    names = ["sim", *(f"sim{number}" for number in range(2, 17))]
    x = lamella.randn(2, 3)
    tensors = [x.to(f"{name}:1") for name in names]
    for name, tensor in zip(names, tensors):
        assert str(tensor.device) == f"{name}:1"
        assert lamella.equal((tensor + tensor).cpu(), x + x)  # the backend's own kernel
        assert lamella.equal(tensor.exp().cpu(), x.exp())
        assert getattr(lamella, name).device_count() == 2
    assert lamella.equal(tensors[3].to("sim9").cpu(), x)  # between backends
    assert error_of(lambda: tensors[1] * tensors[2]) == (
        "mul: expected all tensors to be on one device, got 'self' on sim2:1 and 'other' on sim3:1"
    )
    assert library.sim_add_backend(20, b"again").decode() == (
        "register_backend: expected a part of the backend sim that gives something new, got one "
        "that repeats another's"
    )
    assert library.sim_add_backend(0, b"host").decode() == (
        "register_backend: expected a device type other than cpu and meta, got cpu"
    )


# ---- The example ---------------------------------------------------------------------------------

OUTPUT = """2 devices, the current one is 0
tensor([[ 1., -2.],
        [ 3., -6.]], device='sim:0')
tensor([[9.5257e-01, 4.7426e-02],
        [9.9909e-01, 9.1105e-04]], device='sim:0')
tensor([[ 1., -2.],
        [13.,  6.]], device='sim:0')
sim:1 True True
tensor([[494., 494.],
        [228., 228.]], device='sim:0')
36.0
add: expected all tensors to be on one device, got 'self' on sim:0 and 'other' on cpu
"""


def test_the_example():
    script = ROOT / "examples" / "backend" / "main.py"
    assert run(sys.executable, script, sim_backend.folder()) == OUTPUT


def test_the_example_needs_only_the_c_abi():
    check_needs_only_the_c_abi(sim_backend.library())
