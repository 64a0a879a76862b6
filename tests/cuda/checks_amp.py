"""Mixed precision on "cuda": autocast's lists, the scale of losses, a step of a transformer."""

import math

import pytest

import lamella
import lamella.nn.functional as F
from lamella import compat

torch = compat.install()
WAITS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoHAsync_v2")


def waits(standin):
    return {name: standin.calls(name) for name in WAITS if standin.calls(name) != 0}


@pytest.mark.parametrize("dtype", [lamella.bfloat16, lamella.float16], ids=str)
def test_autocast(cuda, dtype):
    """Examples of each list of PyTorch's page on autocast for CUDA."""
    x, y = lamella.rand(3, 3).cuda(), lamella.rand(3, 3).cuda()
    half = x.to(dtype)
    with lamella.autocast("cuda", dtype=dtype):
        for made in (
            x @ y,
            lamella.mm(x, y),
            lamella.addmm(x, x, y),
            lamella.bmm(x[None], y[None]),
            lamella.baddbmm(x[None], x[None], y[None]),
            lamella.mv(x, y[0]),
            lamella.addmv(x[0], x, y[0]),
            lamella.addr(x, x[0], y[0]),
            lamella.addbmm(x, x[None], y[None]),
            lamella.einsum("ij,jk->ik", x, y),
            lamella.linalg.multi_dot([x, y, x]),
            lamella.linalg.vecdot(x, y),
            F.linear(x, y),
            F.conv1d(x[None], y[:, :, None]),
            F.conv2d(x[None, :, :, None], y[:, :, None, None]),
            F.conv_transpose2d(x[None, :, :, None], y[:, :, None, None]),
            F.prelu(x, y[0, :1]),
            F.scaled_dot_product_attention(x[None, None], y[None, None], x[None, None]),
        ):
            assert made.dtype == dtype and made.is_cuda
        for made in (
            half.exp(),
            half.log(),
            half.pow(2),
            half.softmax(-1),
            half.log_softmax(-1),
            half.sum(),
            half.cumsum(0),
            half.prod(),
            half.norm(),
            F.layer_norm(half, (3,)),
            F.mse_loss(half, half),
            F.nll_loss(half.log_softmax(-1), lamella.arange(3, device="cuda")),
            F.softplus(half),
            lamella.cdist(half, half),
        ):
            assert made.dtype == lamella.float32 and made.is_cuda
        assert lamella.addcmul(x, half, half).dtype == lamella.float32
        assert (half + half).dtype == dtype and (half + x).dtype == lamella.float32
        assert (x.double() @ y.double()).dtype == lamella.float64
        with pytest.raises(RuntimeError, match="binary_cross_entropy"):
            F.binary_cross_entropy(x, y)
        assert (x.cpu() @ y.cpu()).dtype == lamella.float32
    with torch.cuda.amp.autocast():
        assert (x @ y).dtype == lamella.float16
    with torch.cuda.amp.autocast(dtype=dtype):
        assert (x @ y).dtype == dtype

    @torch.cuda.amp.autocast(dtype=dtype)
    def product(a, b):
        return a @ b

    assert product(x, y).dtype == dtype
    assert torch.cuda.amp.amp_definitely_not_available() is False


def test_tf32(cuda, standin):
    """PyTorch's switches: off for products, on for convolutions, unless set."""
    x, kernel = lamella.rand(4, 4).cuda(), lamella.rand(2, 1, 2, 2).cuda()
    backends = torch.backends

    def used(call):
        before = standin.calls("tf32")
        call()
        return standin.calls("tf32") - before

    def product():
        return used(lambda: x @ x)

    def convolution():
        return used(lambda: F.conv2d(x[None, None], kernel))

    assert backends.cudnn.is_available() and not backends.cuda.matmul.allow_tf32
    assert product() == 0 and convolution() == 1
    backends.cuda.matmul.allow_tf32 = True
    assert product() == 1 and torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert product() == 0 and not backends.cuda.matmul.allow_tf32
    torch.set_float32_matmul_precision("medium")
    assert product() == 1 and backends.cuda.matmul.allow_tf32
    assert used(lambda: x.double() @ x.double()) == 0
    backends.cuda.matmul.fp32_precision = "ieee"
    assert product() == 0
    backends.cudnn.allow_tf32 = False
    assert convolution() == 0
    backends.cudnn.conv.fp32_precision = "tf32"
    assert convolution() == 1


def test_scale_of_losses(cuda):
    """The same steps as on the CPU."""

    def steps(device):
        model = lamella.nn.Linear(2, 2)
        with lamella.no_grad():
            model.weight.copy_(lamella.tensor([[1.0, 2.0], [3.0, 4.0]]))
            model.bias.zero_()
        model = model.to(device)
        optimizer = lamella.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        x, seen = lamella.ones(3, 2, device=device), []
        for factor in (1.0, 1.0, math.inf, 1.0, math.nan, 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale(model(x).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            seen += [scaler.get_scale(), scaler.state_dict()["_growth_tracker"]]
            seen += [round(v, 4) for v in model.weight.detach().flatten().tolist()]
        return seen

    expected = steps("cpu")
    assert expected == steps("cuda") and expected[0::6] == [8.0, 16.0, 8.0, 8.0, 4.0, 4.0, 8.0]


def test_unscaling_and_updates_wait_for_nothing(cuda, standin):
    def names(call):
        """What ran on the CPU."""
        cuda.reset_fallbacks()
        standin.standin_reset_calls()
        call()
        return waits(standin), cuda.fallbacks()

    scale = lamella.full((), 8.0, device="cuda")
    tracker = lamella.zeros((), dtype=lamella.int32, device="cuda")
    found = lamella.zeros((), device="cuda")
    seen = []
    for value in (0.0, 0.0, 1.0, 0.0):
        found.fill_(value)
        outcome = names(lambda: torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 2))
        assert outcome == ({}, {})
        seen.append((scale.item(), tracker.item()))
    assert seen == [(8.0, 1), (16.0, 0), (4.0, 0), (4.0, 1)]
    huge = lamella.full((), 2.0**127, device="cuda")
    torch._amp_update_scale_(huge, tracker, found, 2.0, 0.25, 2)
    assert huge.item() == 2.0**127 and tracker.item() == 0

    grads = [lamella.tensor([8.0, 16.0]).cuda(), lamella.tensor([1.0, 2.0]).bfloat16().cuda()]
    found.zero_()
    inverse = lamella.tensor(0.125).cuda()
    outcome = names(lambda: torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse))
    assert outcome == ({}, {})
    assert grads[0].tolist() == [1.0, 2.0] and grads[1].tolist() == [0.125, 0.25]
    assert found.item() == 0
    for bad in (math.inf, -math.inf, math.nan):
        found.zero_()
        grads = [lamella.ones(3).cuda(), lamella.tensor([1.0, bad]).cuda(), lamella.ones(3).cuda()]
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, lamella.tensor(0.5).cuda())
        assert found.item() == 1


# ---- A step of a small transformer ---------------------------------------------------------------


class Block(lamella.nn.Module):
    """One block of nanoGPT's shape."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first = lamella.nn.LayerNorm(width, bias=False)
        self.second = lamella.nn.LayerNorm(width, bias=False)
        self.attend = lamella.nn.Linear(width, 3 * width, bias=False)
        self.project = lamella.nn.Linear(width, width, bias=False)
        self.up = lamella.nn.Linear(width, 4 * width)
        self.down = lamella.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attend(self.first(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Network(lamella.nn.Module):
    def __init__(self, tokens=13, width=8, length=6):
        super().__init__()
        self.tokens = lamella.nn.Embedding(tokens, width)
        self.places = lamella.nn.Embedding(length, width)
        self.blocks = lamella.nn.Sequential(Block(width, 2), Block(width, 2))
        self.norm = lamella.nn.LayerNorm(width)
        self.head = lamella.nn.Linear(width, tokens, bias=False)

    def forward(self, ids, targets):
        places = lamella.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.blocks(self.tokens(ids) + self.places(places)))
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def train(device, steps=3, dtype=None):
    lamella.manual_seed(0)
    model = Network().to(device)
    optimizer = lamella.optim.AdamW(model.parameters(), lr=0.01)
    ids = lamella.randint(0, 13, (2, 7))
    inputs, targets = ids[:, :-1].contiguous().to(device), ids[:, 1:].contiguous().to(device)
    losses = []

    def step():
        optimizer.zero_grad()
        with lamella.autocast(device, dtype=dtype, enabled=dtype is not None):
            loss = model(inputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    for _ in range(steps):
        step()
    return step, losses


@pytest.mark.parametrize("dtype", [None, lamella.bfloat16], ids=str)
def test_a_step_of_a_transformer(cuda, standin, dtype):
    expected = [x.item() for x in train("cpu", dtype=dtype)[1]]
    step, losses = train("cuda", dtype=dtype)
    got = [x.item() for x in losses]
    assert got == pytest.approx(expected, abs=1e-4 if dtype is None else 3e-2)
    cuda.synchronize()
    cuda.reset_fallbacks()
    standin.standin_reset_calls()
    step()
    assert (waits(standin), cuda.fallbacks()) == ({}, {})


@pytest.mark.parametrize("dtype", [None, lamella.bfloat16], ids=str)
def test_an_encoder_waits_for_nothing(cuda, standin, dtype):
    layer = lamella.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    model = lamella.nn.TransformerEncoder(layer, 2).cuda().eval()
    tokens = lamella.nn.Embedding(13, 8).cuda()
    ids = lamella.randint(0, 13, (2, 6)).cuda()
    padding = (lamella.arange(6) >= lamella.tensor([[6], [4]])).cuda()

    def forward():
        with lamella.no_grad(), lamella.autocast("cuda", dtype=dtype, enabled=dtype is not None):
            return model(F.embedding(ids, tokens.weight)), model(
                tokens(ids), src_key_padding_mask=padding
            ).mean(1)

    forward()
    cuda.synchronize()
    cuda.reset_fallbacks()
    standin.standin_reset_calls()
    forward()
    assert (waits(standin), cuda.fallbacks()) == ({}, {})
