"""lamella.func against torch.func."""

import pytest

import lamella
from lamella import func, nn

torch = pytest.importorskip("torch")


def to_own(tensor):
    return lamella.from_numpy(tensor.detach().numpy().copy())


def pairs(*shapes):
    torch.manual_seed(1)
    their = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return [to_own(t) for t in their], their


def close(found, wanted, free=True):
    """The same nest of values; and, where it should be, of no graph."""
    if isinstance(wanted, torch.Tensor):
        assert tuple(found.shape) == tuple(wanted.shape)
        near = pytest.approx(wanted.detach().flatten().tolist(), rel=1e-9, abs=1e-12)
        assert found.detach().flatten().tolist() == near
        assert not (free and found.requires_grad)
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            close(found[key], wanted[key], free)
    elif isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            close(a, b, free)
    else:
        assert found == wanted


PACKAGES = (func, torch.func)


def compare(make, *shapes):
    """make(transforms, *tensors) for both."""
    mine, their = pairs(*shapes)
    close(make(func, *mine), make(torch.func, *their))


def f(x, w):
    return (x.sin() * x * w).sum()


def g(x, w):
    return x * w + x.cos(), {"exp": x.exp()}


def test_grad():
    compare(lambda M, x, w: M.grad(f)(x, w), 3, 3)
    compare(lambda M, x, w: M.grad(f, argnums=(1, 0))(x, w), 3, 3)
    compare(lambda M, x, w: M.grad(f, argnums=-1)(x, w), 3, 3)
    compare(lambda M, x, w: M.grad_and_value(f)(x, w), 3, 3)
    compare(lambda M, x, w: M.grad(lambda x: (x.sum(), g(x, w)), has_aux=True)(x), 3, 3)
    compare(lambda M, x, w: M.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(x), 3, 3)
    compare(lambda M, x, w: M.grad(lambda x: w.sum())(x), 3, 3)

    def nest(tree, k):
        return (tree["a"] * tree["b"][0]).sum() * k

    compare(lambda M, x, w: M.grad(nest)({"a": x, "b": (w,)}, 2.0), 3, 3)
    (x, w), _ = pairs(3, 3)
    value, gradient = func.value_and_grad(f)(x, w)
    assert value.item() == f(x, w).item() and gradient.tolist() == func.grad(f)(x, w).tolist()


def slope(M, x, w):
    return M.jvp(lambda z: f(z, w), (x,), (w,))[1]


def test_transforms_nest():
    compare(lambda M, x: M.grad(M.grad(M.grad(lambda x: x.sin() * x)))(x), ())
    compare(lambda M, x, w: M.grad(lambda y: (M.grad(f)(y, w) * y).sum())(x), 3, 3)
    compare(lambda M, x, w: M.jvp(lambda y: slope(M, y, w), (x,), (w,)), 3, 3)
    compare(lambda M, x, w: M.grad(lambda y: slope(M, y, w))(x), 3, 3)
    compare(lambda M, x, w: M.jvp(M.grad(f), (x, w), (w, x)), 3, 3)
    compare(lambda M, x, w: M.jvp(M.grad(lambda y: (M.grad(f)(y, w) ** 2).sum()), (x,), (w,)), 3, 3)
    compare(lambda M, x, w: M.vjp(M.grad(f), x, w)[1](x), 3, 3)
    # The inner function uses the outer variable.
    compare(lambda M, x: M.grad(lambda a: a * M.grad(lambda b: a * b * b)(a))(x), ())


def test_vjp():
    compare(lambda M, x, w: M.vjp(g, x, w)[0], 3, 3)
    compare(lambda M, x, w: M.vjp(g, x, w)[1]((x, {"exp": w})), 3, 3)
    compare(lambda M, x, w: M.vjp(sine, x)[1](w), 3, 3)
    compare(lambda M, x, w: M.vjp(lambda x: (x * 2, w), x, has_aux=True)[2], 3, 3)
    (x, w), _ = pairs(3, 3)
    _, back = func.vjp(g, x, w)
    first = back((x, {"exp": w}))
    assert [t.tolist() for t in first] == [t.tolist() for t in back((x, {"exp": w}))]


def sine(x):
    return x.sin()


def test_jvp():
    compare(lambda M, x, w: M.jvp(g, (x, w), (w, x)), 3, 3)
    compare(lambda M, x, w: M.jvp(lambda x: (x * 2, w), (x,), (w,), has_aux=True), 3, 3)
    compare(lambda M, x, w: M.jvp(lambda x: w * 1, (x,), (w,)), 3, 3)
    (x, w), _ = pairs(3, 3)
    with pytest.raises(RuntimeError) as error:
        func.jvp(lambda x: w * 1, (x,), (w,), strict=True)
    assert str(error.value) == (
        "jvp: expected output 0 to depend on 'primals', as strict is True, but it does not"
    )


def test_linearize():
    (x, w), (tx, tw) = pairs(3, 3)
    runs = []

    def counted(x, w):
        runs.append(1)
        return g(x, w)

    output, push = func.linearize(counted, x, w)
    wanted = torch.func.jvp(g, (tx, tw), (tw, tx))
    close(output, wanted[0])
    close(push(w, x), wanted[1])
    close(push(w, x), wanted[1])
    assert len(runs) == 1


def test_other_graphs_stay_connected():
    (x, w), (tx, tw) = pairs(3, 3)
    for tensor in (x, w, tx, tw):
        tensor.requires_grad_()
    mine, their = func.grad(f)(x, w), torch.func.grad(f)(tx, tw)
    close(mine, their, free=False)
    (mine.sin()).sum().backward()
    (their.sin()).sum().backward()
    close(x.grad, tx.grad)
    close(w.grad, tw.grad)
    with lamella.no_grad():
        assert not func.grad(f)(x, w).requires_grad
    parameter = nn.Parameter(lamella.ones(3, dtype=lamella.float64))
    assert func.grad(lambda x: (x * x * parameter).sum())(x.detach()).requires_grad


def test_functional_call():
    lamella.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    before = {name: t.clone() for name, t in net.state_dict().items()}
    x = lamella.randn(4, 3)
    state = {name: t.detach().clone() for name, t in net.state_dict().items()}
    state["0.weight"] = lamella.zeros(2, 3)
    out = func.functional_call(net, state, x)
    assert lamella.allclose(out, lamella.zeros(4, 2), atol=1e-5)
    assert all((net.state_dict()[name] == t).all() for name, t in before.items())
    assert state["1.num_batches_tracked"].item() == 1
    assert isinstance(net[0].weight, nn.Parameter) and net[0].weight is not state["0.weight"]

    def loss(parameters):
        return func.functional_call(net[0], parameters, (x,)).pow(2).sum()

    gradients = func.grad(loss)({name: p.detach() for name, p in net[0].named_parameters()})
    loss(dict(net[0].named_parameters())).backward()
    assert lamella.allclose(gradients["weight"], net[0].weight.grad)
    with pytest.raises(AttributeError, match="get_submodule: Sequential has no submodule '7'"):
        func.functional_call(net, {"7.x": x}, x)
    with pytest.raises(RuntimeError, match="missing '0.bias'"):
        func.functional_call(net, {k: v for k, v in state.items() if k != "0.bias"}, x, strict=True)
    with pytest.raises(RuntimeError, match="Sequential has no parameter or buffer 'scale'"):
        func.functional_call(net, {**state, "scale": x}, x, strict=True)


def test_attributes_while_a_module_is_called():
    class Scaled(nn.Linear):
        scale = 1

        def forward(self, x):
            return super().forward(x) * self.scale

    net = nn.Sequential(Scaled(2, 2))
    x = lamella.ones(2)
    assert lamella.equal(func.functional_call(net, {"0.scale": x * 3}, x), net(x) * 3)
    assert net[0].scale == 1 and "scale" not in net[0].__dict__


def test_tied_weights():
    a = nn.Linear(2, 2, bias=False)
    b = nn.Linear(2, 2, bias=False)
    b.weight = a.weight
    net = nn.Sequential(a, b)
    eye = lamella.eye(2) * 2
    x = lamella.ones(1, 2)
    assert func.functional_call(net, {"0.weight": eye}, x).tolist() == [[4, 4]]
    untied = func.functional_call(net, {"0.weight": eye}, x, tie_weights=False)
    assert lamella.allclose(untied, b(x * 2))
    with pytest.raises(ValueError, match="names of one parameter to be given the same tensor"):
        func.functional_call(net, {"0.weight": eye, "1.weight": eye * 2}, x)


ERRORS = [
    (lambda x: func.grad(lambda x: x)(x),
     "grad: expected the function to return a tensor without "),
    (lambda x: func.grad(lambda x: 3)(x),
     "grad: expected the function to return a tensor, got int"),
    (lambda x: func.grad(lambda x: x.sum(), 1)(x),
     "grad: expected 'argnums' to be places of 1 po"),
    (lambda x: func.grad(lambda x: x.sum(), ())(x), "grad: expected 'argnums' not to be empty"),
    (lambda x: func.grad(lambda x: x.sum(), has_aux=True)(x),
     "grad: expected the function to return (output, aux), as has_aux is True, got Tensor"),
    (lambda x: func.grad(lambda x: x.sum())(lamella.arange(3)),
     "grad: expected inputs to be floating-point or complex, got lamella.int64"),
    (lambda x: func.vjp(lambda x: x, x)[1](lamella.ones(2)),
     "vjp: expected 'cotangents' 0 to be a tensor of shape [3], got [2]"),
    (lambda x: func.vjp(lambda x: x, x)[1]((x, x)),
     "vjp: expected 'cotangents' to have the structure of the output, *, got TreeSpec(tuple"),
    (lambda x: func.jvp(lambda x: x, x, x),
     "jvp: expected 'primals' to be a tuple of arguments, got Tensor"),
    (lambda x: func.jvp(lambda x: x, (x,), (x, x)),
     "jvp: expected 'tangents' to have the structure of 'primals', TreeSpec(tuple, None, [*])"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ERRORS)
def test_errors(call, text):
    with pytest.raises(RuntimeError) as error:
        call(lamella.ones(3))
    assert str(error.value).startswith(text)


class Counts(lamella.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", lamella.zeros(1))
        self.part = lamella.nn.Linear(1, 1)

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count, len(list(self.parameters()))


def test_functional_call_of_a_module_that_is_a_part_of_itself():
    module = Counts()
    module.part.whole = module
    given = {"part.whole.part.whole.count": lamella.tensor([5.0])}
    result = lamella.func.functional_call(module, given, lamella.zeros(1), tie_weights=False)
    assert (result[0].item(), module.count.item()) == (6, 0)


@pytest.mark.parametrize("kind", [lamella.nn.Parameter, lamella.Tensor])
def test_functional_call_with_another_name(kind):
    module, extra = Counts(), kind(lamella.ones(1))
    _, count = lamella.func.functional_call(module, {"part.extra": extra}, lamella.zeros(1))
    assert count == (3 if kind is lamella.nn.Parameter else 2)
    assert not hasattr(module.part, "extra")
