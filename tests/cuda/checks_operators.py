"""Operators, autograd, autocast, vmap, traces and modules on "cuda", against the CPU."""

import copy
import io
import pickle

import pytest

import lamella
import lamella.compat.serialization
import lamella.nn.functional as F


def both(function, *inputs, tolerance=0.0):
    """The results of a function on the CPU and on the device, which must be equal bit for bit, but
    for a tolerance where sums have another order."""
    expected = function(*inputs)
    got = function(*(x.cuda() if isinstance(x, lamella.Tensor) else x for x in inputs))
    pairs = zip(expected, got) if isinstance(expected, (tuple, list)) else [(expected, got)]
    for a, b in pairs:
        assert b.device.type == "cuda" and a.dtype == b.dtype and a.shape == b.shape
        assert a.allclose(b.cpu(), rtol=tolerance, atol=tolerance, equal_nan=True)
    return got


X = lamella.linspace(-3, 3, 24).reshape(2, 3, 4)
W = lamella.linspace(-1, 1, 20).reshape(5, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 2 * x,
        lambda x: (x.exp(), x.sin(), x.abs().sqrt(), x.sigmoid(), x.tanh()),
        lambda x: x.transpose(0, 2).mul(x.t().mT if x.dim() == 2 else x.permute(2, 1, 0)),
        lambda x: (x > 0, x == x, x.isnan(), x.logical_not()),
        lambda x: (x.sum(), x.mean(1), x.amax(-1), x.argmax(0), x.cumsum(2), x.std()),
        lambda x: x.sort(-1),
        lambda x: (x[0], x[:, 1:], x[..., None], x[x > 0], x[[1, 0]]),
        lambda x: x.to(lamella.bfloat16) * 3,
        lambda x: x.to(lamella.complex64).mul(1j),
        lambda x: x.to(lamella.int64) // 2,
        lambda x: lamella.where(x > 0, x, -x),
        lambda x: (lamella.cat([x, x], 1), lamella.stack([x, x])),
        lambda x: x.unique(return_counts=True),
        lambda x: x.new_zeros(3).add_(1),
    ],
)  # fmt: skip
def test_operators(function):
    both(function, X)


def test_products_and_networks():
    both(lambda x: (x.softmax(-1), x.log_softmax(0), x.logsumexp(1)), X, tolerance=1e-5)
    both(F.linear, X, W, tolerance=1e-5)
    both(lambda x, w: x @ w.t(), X, W, tolerance=1e-5)
    both(lambda x: lamella.einsum("ijk,ilk->ijl", x, x), X, tolerance=1e-5)
    image, kernel = X.reshape(1, 2, 3, 4), lamella.ones(3, 2, 2, 2)
    both(F.conv2d, image, kernel)
    both(lambda x: F.layer_norm(x, (4,)), X, tolerance=1e-5)
    both(lambda x: F.max_pool2d(x, 2), image)
    both(lamella.linalg.solve, lamella.eye(3) * 2, lamella.ones(3, 1))


def test_writes_come_back():
    x = X.clone().cuda()
    x[0].add_(1)
    x.transpose_(0, 1)
    expected = X.clone()
    expected[0].add_(1)
    assert x.cpu().equal(expected.transpose(0, 1))
    out = lamella.empty(0, device="cuda")
    lamella.add(x, 1, out=out)
    assert out.cpu().equal(x.cpu() + 1)
    version = x._version
    x.mul_(2)
    assert x._version == version + 1


def test_results_of_factories():
    for made in (
        lamella.zeros(2, 3, device="cuda"),
        lamella.full((2,), 7, device="cuda:1"),
        lamella.arange(5, device="cuda"),
        lamella.eye(3, device="cuda"),
        lamella.tensor([1.0, 2.0], device="cuda"),
        lamella.linspace(0, 1, 3, device="cuda"),
        lamella.randperm(4, device="cuda").sort().values,
    ):
        assert made.device.type == "cuda" and made.device.index is not None
        assert made.cpu().device.type == "cpu"
    assert lamella.tensor(3.0, device="cuda").item() == 3.0 and float(
        lamella.ones((), device="cuda")
    )
    assert lamella.arange(3, device="cuda").tolist() == [0, 1, 2]


def test_gradients():
    def gradients(x, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        loss = (F.gelu(F.linear(x, w)).softmax(-1) ** 2).sum() + x.exp().mean()
        return lamella.autograd.grad(loss, (x, w))

    both(gradients, X, W, tolerance=1e-5)
    x = X.cuda().requires_grad_()
    (x * 3).sum().backward()
    assert x.grad.device == x.device and x.grad.cpu().equal(lamella.full_like(X, 3))
    leaf = X.clone().requires_grad_()  # through the copy between devices
    leaf.cuda().mul(2).sum().backward()
    assert leaf.grad.device.type == "cpu" and leaf.grad.equal(lamella.full_like(X, 2))


def test_transforms():
    both(lambda x: lamella.vmap(lambda v: v.sin().sum())(x), X, tolerance=1e-5)
    both(lambda x: lamella.func.grad(lambda v: (v**3).sum())(x), X)
    both(lambda x: lamella.func.jvp(lambda v: v.exp(), (x,), (x,)), X)
    both(lambda x, w: lamella.vmap(F.linear, in_dims=(0, None))(x, w), X, W, tolerance=1e-5)


def test_autocast():
    with lamella.autocast("cuda", dtype=lamella.bfloat16):
        y = F.linear(X.cuda(), W.cuda())
        assert y.dtype == lamella.bfloat16 and y.device.type == "cuda"
        assert y.float().softmax(-1).dtype == lamella.float32
        assert F.linear(X, W).dtype == lamella.float32  # the CPU's is off
    assert F.linear(X.cuda(), W.cuda()).dtype == lamella.float32


def test_a_training_step():
    def losses(device):
        lamella.manual_seed(0)
        model = lamella.nn.Sequential(
            lamella.nn.Linear(4, 8),
            lamella.nn.ReLU(),
            lamella.nn.LayerNorm(8),
            lamella.nn.Linear(8, 1),
        ).to(device)
        optimizer = lamella.optim.AdamW(model.parameters(), lr=0.01)
        found = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(X.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found, {name: value.cpu() for name, value in model.state_dict().items()}

    (expected, parameters), (got, on_device) = losses("cpu"), losses("cuda")
    assert expected == pytest.approx(got, abs=1e-5)
    assert all(parameters[n].allclose(on_device[n], atol=1e-5) for n in parameters)
    module = lamella.nn.Linear(2, 2).cuda()
    assert all(p.is_cuda for p in module.parameters())


def test_tensors_are_copied_and_pickled():
    x = X.cuda(1)
    for made in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert made.device == x.device and made.equal(x)
    with pytest.raises(BufferError, match="expected a tensor on cpu, got cuda"):
        memoryview(x)
    assert x.numpy(force=True).shape == (2, 3, 4)
    buffer = io.BytesIO()
    lamella.compat.serialization.save({"x": x}, buffer)
    buffer.seek(0)
    assert lamella.compat.serialization.load(buffer, map_location="cpu")["x"].equal(X)


def test_fallbacks_are_counted(cuda):
    x = X.cuda()
    lamella.linalg.det(x[0, :, :3])
    x.igamma(x)
    x.igamma(x)
    assert cuda.fallbacks() == {"aten::igamma": 2}
    cuda.reset_fallbacks()
    assert x.reshape(6, 4).t()[1:].shape == (3, 6) and x[1, 2, 3].item() == 3.0
    assert x.clone().device == x.device and cuda.fallbacks() == {}
