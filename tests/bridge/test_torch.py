"""lamella.bridge.torch: operators of a library as operators of PyTorch."""

import copy
import gc
import subprocess
import sys

import pytest
from in_threads import in_threads

import lamella

torch = pytest.importorskip("torch")
func = torch.func


def plain(a, b):
    return (torch.lerp(a**3 + torch.exp(a * 0.1), b, 0.25) ** 2).sum()


def inputs(*shape, dtype=torch.float64):
    torch.manual_seed(0)
    return torch.rand(*shape, dtype=dtype), torch.rand(*shape, dtype=dtype)


def test_names(ops, library):
    assert "midpoint" in dir(ops) and ops.midpoint is torch.ops.cases.midpoint
    assert lamella.bridge.torch(library).cases is ops
    with pytest.raises(AttributeError, match="cases has no 'nothing'; it has cube"):
        _ = ops.nothing


def test_values(ops):
    a, b = inputs(4, 3)
    torch.testing.assert_close(ops.midpoint(a, b, 0.25), torch.lerp(a, b, 0.25))
    torch.testing.assert_close(ops.midpoint(a.t(), b.t(), at=0.5), (a.t() + b.t()) / 2)
    assert ops.cube(torch.empty(0, 3)).shape == (0, 3)
    c = torch.complex(a, b)
    torch.testing.assert_close(ops.wave(c.conj(), by=1.0), c.conj().sin())
    assert ops.steps(torch.tensor([1.7])).item() == 1


def test_results_own_their_memory(ops):
    x = torch.arange(3.0)
    assert ops.same(x).data_ptr() != x.data_ptr()
    first, second = ops.parts(x, [1, 2], "first")
    first.fill_(9)
    assert second.tolist() == [0, 1] and x.tolist() == [0, 1, 2]
    first, cosine, n = ops.pair(x, 3)
    assert n == 4 and first.tolist() == [0, 3, 6]
    torch.testing.assert_close(cosine, x.cos())


def test_other_door(ops):
    x = torch.arange(3.0, requires_grad=True)
    assert ops.scaled(x, 2).tolist() == [0, 2, 4]
    assert ops.scaled(x.detach(), 1j).tolist() == [0, 1j, 2j]
    ops.scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_writes(ops):
    x = torch.arange(3.0)
    before = x._version
    assert ops.raise_by_(x, 2.0) is x and x.tolist() == [2, 3, 4] and x._version > before
    y, z = torch.empty(2), torch.empty(2)
    assert ops.fill_twice(y, z, 3.0) is None and y.tolist() == z.tolist() == [3, 3]
    out = torch.empty(3)
    assert ops.midpoint(x, x, 0.5, out=out) is out and out.tolist() == [2, 3, 4]
    leaf = torch.arange(3.0, requires_grad=True)
    y = leaf * 2
    ops.raise_by_(y, 1.0)
    (y * y).sum().backward()
    assert leaf.grad.tolist() == [4, 12, 20]


def test_writes_that_have_no_gradient(ops):
    text = "expected no argument to require gradients or to be transformed where it is written"
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"fill_twice: {text}"):
        ops.fill_twice(x * 1, torch.ones(3), 1.0)
    with pytest.raises(NotImplementedError, match=f"midpoint: {text}"):
        ops.midpoint(x, x, out=torch.empty(3))
    with pytest.raises(RuntimeError, match="midpoint: expected the tensor that it writes to have"):
        ops.midpoint(torch.ones(3), torch.ones(3), out=torch.empty(2))


def test_views(ops):
    x = torch.arange(6.0).reshape(2, 3)
    row = ops.row(x, 1)
    row.fill_(9)
    assert x[1].tolist() == [9, 9, 9] and row.data_ptr() == x[1].data_ptr()
    x.requires_grad_()
    ops.row(x, 1).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert torch.vmap(lambda r: ops.row(r, 2))(x.detach()).tolist() == [2, 9]


@pytest.mark.parametrize("kind", ["type", "value", "index", "other"])
@pytest.mark.parametrize("gradient", [False, True])
def test_errors(ops, kind, gradient):
    expected = {"type": TypeError, "value": ValueError, "index": IndexError}.get(kind, RuntimeError)
    with pytest.raises(expected) as error:
        ops.fail(torch.ones(2, requires_grad=gradient), kind)
    assert type(error.value) is expected
    assert str(error.value) == f"fail: expected 'kind' to be kind, got {kind}"


def test_no_derivative(ops):
    x = torch.ones(2, requires_grad=True)
    assert not ops.steps(x).requires_grad
    with pytest.raises(NotImplementedError, match="cases::opaque: has no derivative"):
        ops.opaque(x).sum().backward()
    with pytest.raises(NotImplementedError, match="cases::opaque: has no derivative"):
        func.jvp(ops.opaque, (x.detach(),), (x.detach(),))


def test_functionalize_is_refused(ops):
    with pytest.raises(NotImplementedError, match="cases::cube: torch.func.functionalize cannot"):
        func.functionalize(ops.cube)(torch.ones(2))


def test_no_formula_for_tangents(ops):
    x = torch.tensor([1.0, 2.0])
    value, tangent = func.jvp(ops.cube_back, (x,), (torch.ones(2),))
    assert value.tolist() == [1, 8] and tangent.tolist() == [3, 12]
    hessian = func.hessian(lambda v: ops.cube_back(v).sum())(x)
    assert hessian.tolist() == [[6, 0], [0, 12]]


def test_gradcheck(ops):
    a, b = (x.requires_grad_() for x in inputs(3))

    def f(a, b):
        return ops.midpoint(ops.cube(a), ops.grow(b), 0.3), ops.squares([a, b])

    assert torch.autograd.gradcheck(
        f, (a, b), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(f, (a, b), check_fwd_over_rev=True, check_batched_grad=True)


def third_derivative(f, a, b):
    x = a.clone().requires_grad_()
    value = f(x, b)
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    return value


TRANSFORMS = {
    "grad": lambda f, a, b: func.grad(f, (0, 1))(a, b),
    "vjp": lambda f, a, b: func.vjp(f, a, b)[1](torch.ones((), dtype=a.dtype)),
    "jvp": lambda f, a, b: func.jvp(f, (a, b), (b, a)),
    "vmap": lambda f, a, b: func.vmap(f, (0, None))(torch.stack([a, b]), b),
    "vmap of grad": lambda f, a, b: func.vmap(func.grad(f), (0, None))(torch.stack([a, b]), b),
    "grad of vmap": lambda f, a, b: func.grad(
        lambda b: func.vmap(f, (0, None))(torch.stack([a, a * 2]), b).sum()
    )(b),
    "vmap of vmap": lambda f, a, b: func.vmap(func.vmap(f, (0, None)), (None, 0))(
        torch.stack([a, b]), torch.stack([a, b, a + b])
    ),
    "jacfwd": lambda f, a, b: func.jacfwd(f)(a, b),
    "jacrev": lambda f, a, b: func.jacrev(f)(a, b),
    "hessian": lambda f, a, b: func.hessian(f, (0, 1))(a, b),
    "jvp of grad": lambda f, a, b: func.jvp(func.grad(f), (a, b), (b, a)),
    "grad of jvp": lambda f, a, b: func.grad(lambda a: func.jvp(f, (a, b), (b, a))[1])(a),
    "third derivative": third_derivative,
}


@pytest.mark.filterwarnings("ignore:vmap. cases")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms(bridged, transform):
    a, b = inputs(4)
    found, expected = (TRANSFORMS[transform](f, a, b) for f in (bridged, plain))
    torch.testing.assert_close(found, expected)


# ---- Calls whose kernel for autograd is in C ----


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


class Logged(torch.Tensor):
    seen: list = []

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(str(function))
        plain = [x.plain if isinstance(x, Logged) else x for x in args]
        return function(*plain, **(kwargs or {}))


def test_plain_calls_are_known(ops):
    assert lamella.bridge._torch_plain.open_torch()


def test_modes_and_subclasses_see_calls(ops):
    x = torch.tensor([1.0, 2.0])
    for leaf in (x, x.clone().requires_grad_()):
        with Recorder() as mode:
            y = ops.cube(leaf)
        assert mode.names == ["cases.cube.default"] and y.tolist() == [1, 8]
        assert y.requires_grad == leaf.requires_grad
    wrapped = torch.Tensor._make_wrapper_subclass(Logged, x.shape, dtype=x.dtype)
    wrapped.plain = x
    assert ops.cube(wrapped).tolist() == [1, 8]
    with_data = torch.Tensor._make_subclass(Logged, x)
    with_data.plain = x
    assert ops.cube(with_data).tolist() == [1, 8]
    assert Logged.seen == ["cases.cube.default"] * 2


def test_lazy_tensors(ops):
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert ops.cube(z.conj().imag).tolist() == [-8, 64]
    assert ops.cube(torch._neg_view(z.real)).tolist() == [-1, -27]
    assert ops.cube(torch._efficientzerotensor(2)).tolist() == [0, 0]
    assert ops.cube(torch.empty(2, device="meta")).is_meta
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(z.real, torch.ones(2))
        with torch.no_grad():
            value, tangent = torch.autograd.forward_ad.unpack_dual(ops.cube(dual))
        assert value.tolist() == [1, 27] and tangent.tolist() == [3, 27]


def test_where_a_gradient_is_recorded(ops):
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    assert ops.midpoint(x, y).grad_fn is not None and ops.midpoint(y, x, at=0.5).requires_grad
    assert ops.squares([y, x]).requires_grad and not ops.squares([y, y]).requires_grad
    assert not ops.midpoint(x.detach(), y).requires_grad
    with torch.no_grad():
        assert not ops.midpoint(x, y).requires_grad and not ops.squares([x]).requires_grad
    with torch.inference_mode():
        assert ops.midpoint(torch.ones(2), y).is_inference()
    ops.midpoint(y, x, 0.25).sum().backward()
    assert x.grad.tolist() == [0.25, 0.25] and y.grad is None
    z = ops.cube(x)
    z.register_hook(lambda g: g * 2)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    assert x.grad.tolist() == [12.25, 12.25]


def test_an_argument_without_a_gradient(ops):
    x, y = (torch.tensor([2.0], requires_grad=True) for _ in range(2))
    ops.cube_less(x.detach(), y).sum().backward()
    assert y.grad is None
    ops.cube_less(x, y).sum().backward()
    assert x.grad.tolist() == [12] and y.grad is None


def test_without_plain_calls(library):
    """Where a version of torch lacks what plain calls need, Python asks for gradients."""
    program = f"""
import torch, lamella.bridge
from lamella.bridge import _torch
_torch.open_torch = lambda: False
ops = lamella.bridge.torch({str(library)!r}).cases
x = torch.tensor([2.0], requires_grad=True)
assert not ops.cube(x.detach()).requires_grad
ops.cube(x).backward()
assert x.grad.tolist() == [12]
try:
    ops.fail(x, "type")
except TypeError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "fail: expected 'kind' to be kind, got type\n", found.stderr


def test_autocast(ops):
    x = torch.ones(2, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.midpoint(x, x).dtype == torch.float32
        assert ops.scaled(x, 2.0).dtype == torch.bfloat16
        assert ops.lower(x.float()).dtype == torch.bfloat16
        assert ops.lower(x.double()).dtype == torch.float64
        assert ops.widest(x, [x]).dtype == torch.bfloat16
        assert ops.widest(x, [x.float()]).dtype == torch.float32
        assert ops.summed(x).dtype == torch.float32
        assert ops.summed(x, dtype=torch.float64).dtype == torch.float64
        with pytest.raises(RuntimeError, match="unsafe: expected to be called outside of autocast"):
            ops.unsafe(x)
    assert ops.unsafe(x).dtype == ops.summed(x).dtype == torch.bfloat16


def test_compile(ops, bridged):
    a, b = inputs(5)
    compiled = torch.compile(bridged, fullgraph=True, backend="aot_eager")

    def both(f):
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        value = f(x, y)
        value.backward()
        return value.detach(), x.grad, y.grad

    torch.testing.assert_close(both(compiled), both(plain))

    def in_place(x):
        y = x * 2
        ops.raise_by_(y, 1.0)
        return ops.row(y, 0) + ops.midpoint(y, y, out=torch.empty_like(y))

    x = torch.rand(2, 2)
    torch.testing.assert_close(torch.compile(in_place, fullgraph=True, backend="aot_eager")(x),
                               (x * 2 + 1)[0] + x * 2 + 1)  # fmt: skip


def test_one_compilation_for_all_sizes(ops):
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")

    def f(x):
        return ops.total(ops.cube(x), [1]) + ops.grow(x).sum(1)

    compiled = torch.compile(f, fullgraph=True, backend=counter, dynamic=True)
    for n in (3, 5, 8, 13):
        x = torch.rand(n, n + 1, requires_grad=True)
        y = compiled(x)
        y.sum().backward()
        torch.testing.assert_close(y, (x**3).sum(1) + x.exp().sum(1))
        torch.testing.assert_close(x.grad, 3 * x**2 + x.exp())
    assert counter.frame_count == 1


def test_export(ops):
    class Model(torch.nn.Module):
        def forward(self, x):
            return ops.cube(x) + ops.total(x, [1], True)

    x = torch.rand(4, 3)
    sizes = {"x": {0: torch.export.Dim("n")}}
    program = torch.export.export(Model(), (x,), dynamic_shapes=sizes)
    y = torch.rand(7, 3)
    torch.testing.assert_close(program.module()(y), y**3 + y.sum(1, keepdim=True))


def opcheck_cases():
    x = torch.rand(3, requires_grad=True)
    everything = ([x, x], x.detach(), 1, 2.0, True, "abc", [1, 2], [0.5])
    yield "midpoint", "default", (x, x.detach()), {}
    yield "midpoint", "out", (x.detach(), x.detach()), {"out": torch.rand(3)}
    yield "cube", "default", (torch.rand(2, 3).t().requires_grad_(),), {}
    yield "grow", "default", (x,), {}
    yield "squares", "default", ([x, x],), {}
    yield "everything", "default", everything, {"of": 1.0, "os": "x", "bs": [True]}
    yield "scaled", "default", (x, 2.0), {}
    yield "pair", "default", (x, 2), {}
    yield "parts", "default", (x, [1, 2], "first"), {}
    yield "same", "default", (x,), {}
    yield "raise_by_", "default", (torch.rand(3),), {}
    yield "fill_twice", "default", (torch.rand(3), torch.rand(3), 2.0), {}
    yield "row", "default", (x, 1), {}
    yield "total", "default", (x, [0]), {}
    yield "wave", "default", (x, x), {}


@pytest.mark.parametrize("name, overload, args, kwargs", list(opcheck_cases()))
def test_opcheck(ops, name, overload, args, kwargs):
    op = getattr(getattr(torch.ops.cases, name), overload)
    results = torch.library.opcheck(op, args, kwargs)
    assert set(results.values()) == {"SUCCESS"}


class Model(torch.nn.Module):
    def __init__(self, ops):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(3))
        self.ops = ops

    def forward(self, x):
        return torch.ops.cases.midpoint(self.weight, torch.ops.cases.cube(x), 0.5)


def test_deepcopy(ops):
    model, x = Model(None), torch.rand(3)
    model(x).sum().backward()
    again = copy.deepcopy(model)
    torch.testing.assert_close(again(x), model(x))
    assert again.weight is not model.weight


def test_threads(ops):
    def work():
        for _ in range(50):
            x = torch.rand(64, requires_grad=True)
            ops.cube(ops.midpoint(x, x)).sum().backward()
            torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)

    in_threads(work)


def test_loops_run_on_the_threads_of_torch(library):
    program = f"""
import os, torch, lamella.bridge
ops = lamella.bridge.torch({str(library)!r}).cases
torch.set_num_threads(3)
x = torch.rand(1 << 22)
expected = x.sin() * 2  # torch's threads exist now
before = len(os.listdir("/proc/self/task"))
torch.testing.assert_close(ops.wave(x), expected)
assert len(os.listdir("/proc/self/task")) == before, os.listdir("/proc/self/task")
torch.set_num_threads(1)
torch.testing.assert_close(ops.wave(x), expected)
lamella.set_num_threads(3)
lamella.rand(1 << 22).sin()
assert len(os.listdir("/proc/self/task")) == before + 2
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def pages():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1])


def test_nothing_leaks(ops):
    def once(n):
        for _ in range(n):
            x = torch.rand(4096, requires_grad=True)
            y = ops.midpoint(ops.cube(x), ops.grow(x)).sum()
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            g.sum().backward()
            ops.parts(x, [1, 2], "first")
            ops.everything([x], x, 1, 2.0, True, "abc", [1, 2], [0.5], ois=[1], os="x")
            with pytest.raises(TypeError):
                ops.fail(x, "type")

    once(50)
    before = pages()
    once(150)  # 150 tensors of 16 KiB would be 600 pages
    assert pages() - before < 400


def test_fork_and_pickle(library):
    """A child of a process that has called operators calls them, and gives results back."""
    program = f"""
import os, pickle, torch, lamella.bridge
torch.set_num_threads(1)
ops = lamella.bridge.torch({str(library)!r}).cases
arrays = lamella.bridge.dlpack({str(library)!r}).cases
x = torch.tensor([1.0, 2.0], requires_grad=True)
assert pickle.loads(pickle.dumps(ops.cube(x).detach())).tolist() == [1, 8]
read, write = os.pipe()
if os.fork() == 0:
    y = ops.midpoint(ops.cube(x), x, 0.5)
    (g,) = torch.autograd.grad(y.sum(), x)
    os.write(write, pickle.dumps((y.detach(), g, arrays.cube(x.detach()))))
    os._exit(0)
y, g, z = pickle.loads(os.read(read, 1 << 16))
assert os.wait()[1] == 0
assert y.tolist() == [1, 5] and g.tolist() == [2, 6.5] and z.tolist() == [1, 8]
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
