"""Autocast in training: cached casts of weights, custom functions and checkpoints."""

import gc

import pytest

torch = pytest.importorskip("torch")

from op_db_mirror import to_lamella  # noqa: E402

import lamella  # noqa: E402
from lamella.utils.checkpoint import checkpoint  # noqa: E402

F16, F32 = lamella.float16, lamella.float32


def region(**kwargs):
    return lamella.autocast("cpu", **kwargs)


def product():
    a = lamella.ones(2, 2)
    return lamella.mm(a, a)


# ---- Casts of weights ----------------------------------------------------------------------------


def cast_nodes(result):
    """The nodes that cast the operands of a matrix product."""
    return [edge[0] for edge in result.grad_fn.next_functions if edge[0] is not None]


def test_a_weight_is_cast_once_in_a_region():
    weight, x = lamella.ones(3, 3, requires_grad=True), lamella.ones(3, 3)
    with region():
        first, second = lamella.mm(x, weight), lamella.mm(x, weight)
        with region():
            third = lamella.mm(x, weight)
        fourth = lamella.mm(x, weight)
        (node,) = cast_nodes(first)
        assert all(cast_nodes(one) == [node] for one in (second, third, fourth))
        lamella.clear_autocast_cache()
        assert cast_nodes(lamella.mm(x, weight)) != [node]
    with region():
        assert cast_nodes(lamella.mm(x, weight)) != [node]
    with region(cache_enabled=False):
        assert cast_nodes(lamella.mm(x, weight)) != cast_nodes(lamella.mm(x, weight))
    (first + second + third + fourth).sum().backward()
    assert weight.grad.dtype == F32
    assert weight.grad.tolist() == [[12.0] * 3] * 3


def test_a_weight_that_changed_is_cast_again():
    weight, x = lamella.ones(2, 2, requires_grad=True), lamella.ones(2, 2)
    with region():
        assert lamella.mm(x, weight)[0, 0].item() == 2
        with lamella.no_grad():
            weight.add_(1)
        assert lamella.mm(x, weight)[0, 0].item() == 4
        weight.data = lamella.full((2, 2), 5.0)
        assert lamella.mm(x, weight)[0, 0].item() == 10


def test_a_cast_without_a_history_is_not_used_with_one():
    weight, x = lamella.ones(2, 2, requires_grad=True), lamella.ones(2, 2)
    with region():
        with lamella.no_grad():
            assert not lamella.mm(x, weight).requires_grad
        made = lamella.mm(x, weight)
        with lamella.inference_mode():
            assert lamella.mm(x, weight).is_inference()
        again = lamella.mm(x, weight)
    assert made.requires_grad and again.requires_grad
    (made + again).sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0]] * 2


def test_casts_do_not_keep_weights():
    import weakref

    weight, x = lamella.ones(2, 2, requires_grad=True), lamella.ones(2, 2)
    gone = weakref.ref(weight)
    with region():
        lamella.mm(x, weight)
    del weight
    gc.collect()
    assert gone() is None


# ---- Gradients -----------------------------------------------------------------------------------


def test_backward_is_without_autocast():
    seen = []

    class Watch(lamella.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((lamella.is_autocast_enabled("cpu"), product().dtype))
            return grad

    def gradient(inside):
        x = lamella.full((2, 2), 0.3, requires_grad=True)
        with region():
            loss = Watch.apply(lamella.mm(x, x)).float().square().sum()
            if inside:
                loss.backward()
                assert lamella.is_autocast_enabled("cpu")
        if not inside:
            loss.backward()
        assert x.grad.dtype == F32
        return x.grad.tolist()

    assert gradient(True) == gradient(False)
    assert seen == [(False, F32)] * 2


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
def test_custom_functions_as_in_pytorch(cast_inputs):
    def run(module):
        seen = []
        dtype = getattr(module, cast_inputs) if cast_inputs else None

        class Product(module.autograd.Function):
            @staticmethod
            @module.amp.custom_fwd(device_type="cpu", cast_inputs=dtype)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                made = a.mm(b)
                seen.append((str(a.dtype), str(made.dtype), module.is_autocast_enabled("cpu")))
                return made

            @staticmethod
            @module.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                made = grad.mm(b.t())
                seen.append((str(made.dtype), module.is_autocast_enabled("cpu")))
                return made, a.t().mm(grad)

        x = module.full((2, 2), 0.5, requires_grad=True)
        y = module.full((2, 2), 0.25, requires_grad=True)
        with module.autocast("cpu"):
            out = Product.apply(x, y)
        out.float().sum().backward()
        Product.apply(x, y)
        return [[str(part).replace("lamella.", "torch.") for part in one] for one in seen] + [
            x.grad.tolist(),
            str(x.grad.dtype).rpartition(".")[2],
        ]

    assert run(lamella) == run(torch)


def network(module, seed):
    torch.manual_seed(seed)
    made = torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.LayerNorm(24),
        torch.nn.Linear(24, 8),
        torch.nn.GELU(),
        torch.nn.Linear(8, 3),
    )
    if module is torch:
        return made
    nn = lamella.nn
    ours = nn.Sequential(
        nn.Conv1d(2, 4, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.LayerNorm(24),
        nn.Linear(24, 8),
        nn.GELU(),
        nn.Linear(8, 3),
    )
    ours.load_state_dict({key: to_lamella(value) for key, value in made.state_dict().items()})
    return ours


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_as_in_pytorch(dtype):
    def train(module):
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(16, 2, 8, generator=generator)
        y = torch.randint(0, 3, (16,), generator=generator)
        if module is lamella:
            x, y = to_lamella(x), to_lamella(y)
        net = network(module, 1)
        optimizer = module.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for _ in range(8):
            with module.autocast("cpu", dtype=getattr(module, dtype)):
                out = net(x)
                loss = module.nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        dtypes = {str(p.grad.dtype).rpartition(".")[2] for p in net.parameters()}
        assert dtypes == {"float32"}
        return str(out.dtype).rpartition(".")[2], losses

    (ours, losses), (theirs, expected) = train(lamella), train(torch)
    assert ours == theirs == dtype
    assert losses == pytest.approx(expected, rel=0.03)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_run_again_as_before(use_reentrant):
    linear = lamella.nn.Linear(4, 4)
    x = lamella.ones(2, 4, requires_grad=True)
    seen = []

    def function(x):
        y = linear(x)
        seen.append(y.dtype)
        return y.square()

    with region(dtype=F16):
        out = checkpoint(function, x, use_reentrant=use_reentrant)
    out.float().sum().backward()
    assert seen == [F16, F16]
    got = x.grad.clone()
    x.grad = None
    with region(dtype=F16):
        out = function(x)
    out.float().sum().backward()
    assert got.tolist() == x.grad.tolist()
