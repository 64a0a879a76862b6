"""Programs of devices as captured graphs, and products with their epilogues. Oracles are the same
functions, uncompiled."""

import threading

import pytest
import torch
from checks_graphs import captured, counts

import lamella
from lamella import hlo, nn

NAMES = ("cuGraphLaunch", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemAlloc_v2",
         "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cublasLtMatmul")  # fmt: skip


def test_programs_that_repeat(cuda, standin):
    """The second run is captured; later ones are one launch, and a copy of each result and of each
    input whose address changes."""
    lamella.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).cuda().eval()
    compiled = lamella.compile(model, mode="reduce-overhead", fullgraph=True)
    inputs = [lamella.randn(2, 8).cuda() for _ in range(4)]
    with lamella.no_grad():
        expected = [model(x) for x in inputs]
        for _ in range(2):
            compiled(inputs[0])
        cuda.synchronize()
        standin.standin_reset_calls()
        results = [compiled(inputs[0])]
        assert counts(standin, *NAMES) == [1, 0, 1, 0, 0, 0, 0]
        assert "runs as a graph, 0 of 5 arguments copied" in compiled.explanation(steps=True)
        results += [compiled(x) for x in inputs[1:]]  # captured once more
        standin.standin_reset_calls()
        results.append(compiled(inputs[2]))
        assert counts(standin, *NAMES) == [1, 0, 2, 0, 0, 0, 0]
        assert "runs as a graph, 1 of 5 arguments copied" in compiled.explanation(steps=True)
    for got, wanted in zip(results, [*expected, expected[2]], strict=True):
        torch.testing.assert_close(torch.from_dlpack(got.cpu()), torch.from_dlpack(wanted.cpu()))


def test_programs_without_a_mode_launch_each_step(cuda, standin):
    compiled = lamella.compile(lambda x: (x + 1).sum(0))
    x = lamella.ones(3, 3, device="cuda")
    for _ in range(4):
        assert compiled(x).tolist() == [6.0] * 3
    assert counts(standin, "cuGraphLaunch") == [0]
    with pytest.raises(ValueError) as caught:
        lamella.compile(lambda x: x, mode="fast")
    assert str(caught.value) == (
        "compile: expected 'mode' to be None or one of 'default', 'reduce-overhead', "
        "'max-autotune', 'max-autotune-no-cudagraphs', got 'fast'"
    )


def test_gradients_of_programs_as_graphs(cuda, standin):
    lamella.manual_seed(2)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)).cuda()
    compiled = lamella.compile(
        lambda x: model(x).pow(2).mean(), mode="reduce-overhead", fullgraph=True
    )
    for seed in range(5):
        x = lamella.randn(4, 8, generator=lamella.Generator().manual_seed(seed)).cuda()
        grads = []
        for fn in (compiled, lambda x: model(x).pow(2).mean()):
            model.zero_grad()
            fn(x).backward()
            grads.append([p.grad.clone().cpu() for p in model.parameters()])
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(torch.from_dlpack(a), torch.from_dlpack(b))
    assert standin.calls("cuGraphLaunch") >= 6


def test_results_are_of_their_own(cuda):
    compiled = lamella.compile(lambda x: (x + 1, x.t() * 2), mode="reduce-overhead")
    x = lamella.arange(6.0).reshape(2, 3).cuda()
    kept = []
    for _ in range(5):
        kept.append((compiled(x), (x + 1).tolist(), (x.t() * 2).tolist()))
        x.add_(1)
    for (first, second), a, b in kept:
        assert first.tolist() == a and second.tolist() == b


def test_programs_in_threads(cuda):
    """Runs at the same time: one replays, the others launch their steps."""
    compiled = lamella.compile(lambda x: (x * 2).exp() + 1, mode="reduce-overhead")
    xs = [lamella.full((4,), 0.1 * i, device="cuda") for i in range(4)]
    expected = [((x * 2).exp() + 1).tolist() for x in xs]
    wrong = []

    def work(i):
        for _ in range(20):
            if compiled(xs[i]).tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_programs_that_write_arguments(cuda):
    @lamella.compile(mode="reduce-overhead", fullgraph=True)
    def fn(x, y):
        y.add_(x)
        return y * 2

    x, y = lamella.ones(3, device="cuda"), lamella.zeros(3, device="cuda")
    assert [fn(x, y).tolist() for _ in range(4)] == [[2.0 * k] * 3 for k in (1, 2, 3, 4)]
    assert y.tolist() == [4.0] * 3


@pytest.mark.parametrize("dtype", [lamella.float32, lamella.bfloat16, lamella.float16])
@pytest.mark.parametrize("sizes", [(4,), (2, 3, 4), (1, 1, 4), (4, 4)])
def test_rows_and_relu_are_epilogues_of_products(cuda, standin, dtype, sizes):
    """A linear layer with its bias, and a relu, is one call of cuBLASLt and nothing else; a product
    that was rounded before the sum stays apart."""
    lamella.manual_seed(1)
    linear = nn.Linear(4, 6).to(dtype)
    x = lamella.randn(*sizes).to(dtype)
    functions = [
        linear,
        lambda x: linear(x).relu(),
        lambda x: lamella.clamp(linear(x), min=0),
        lambda x: linear.bias + x.reshape(-1, 4) @ linear.weight.t(),
    ]
    with lamella.no_grad():
        expected = [fn(x).float() for fn in functions]
        linear.cuda()
        for fn, wanted in zip(functions, expected, strict=True):
            compiled = lamella.compile(fn, fullgraph=True)
            compiled(x.cuda())
            given = x.cuda()
            cuda.synchronize()
            standin.standin_reset_calls()
            made = compiled(given)
            names = ("cublasLtMatmul", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemAlloc_v2")
            apart = fn is functions[3] and dtype != lamella.float32
            assert counts(standin, *names) == [1, int(apart), 0, 0]
            assert made.shape == wanted.shape and made.dtype == dtype
            tolerance = 1e-5 if dtype == lamella.float32 else 2e-2
            torch.testing.assert_close(
                torch.from_dlpack(made.cpu().float()),
                torch.from_dlpack(wanted),
                rtol=tolerance,
                atol=tolerance,
            )


def test_results_that_are_used_again_stay(cuda):
    """A sum that something else reads is no part of a relu, and a product none of a sum."""
    w, b, x = lamella.randn(4, 6), lamella.randn(6), lamella.randn(3, 4)

    def both(x, w, b):
        y = x @ w + b
        return y.relu(), y * 2

    def product(x, w, b):
        y = x @ w
        return y + b, y

    def columns(x, w, b):
        return (x @ w)[:, :3] + b[:3, None]

    for fn in (both, product, columns):
        here, there = fn(x, w, b), lamella.compile(fn)(x.cuda(), w.cuda(), b.cuda())
        for a, b_ in zip([here] if fn is columns else here, [there] if fn is columns else there):
            torch.testing.assert_close(torch.from_dlpack(b_.cpu()), torch.from_dlpack(a))


LOOP = """HloModule m
condition { s = s32[] parameter(0) n = s32[] constant(3)
  ROOT r = pred[] compare(s, n), direction=LT }
body { s = s32[] parameter(0) o = s32[] constant(1) ROOT r = s32[] add(s, o) }
ENTRY e { a = s32[] parameter(0) ROOT w = s32[] while(a), condition=condition, body=body }
"""


def test_modules_as_graphs(cuda, standin):
    module = hlo.compile(
        "HloModule m\nENTRY e { a = f32[4] parameter(0) c = f32[4] constant({1, 2, 3, 4})"
        " m = f32[4] multiply(a, c) ROOT r = f32[4] exponential(m) }",
        device_graphs=True,
    )
    x = lamella.arange(4.0).cuda()
    for _ in range(3):
        assert module(x)[0].tolist() == pytest.approx(
            (x * lamella.arange(1.0, 5.0).cuda()).exp().tolist()
        )
    assert counts(standin, "cuGraphLaunch") == [2]
    loop = hlo.compile(LOOP, device_graphs=True)
    for _ in range(3):
        assert loop(lamella.tensor(0, dtype=lamella.int32).cuda())[0].item() == 3
    assert "runs step by step: " in loop.explain() and "waits for nothing" in loop.explain()
    assert counts(standin, "cuGraphLaunch") == [2]


def test_programs_inside_a_capture_and_on_other_streams(cuda, standin):
    compiled = lamella.compile(lambda x: (x * 3).exp(), mode="reduce-overhead")
    x = lamella.ones(4, device="cuda")
    for _ in range(3):
        compiled(x)
    launched = standin.calls("cuGraphLaunch")
    graph, made = captured(cuda, lambda: compiled(x))
    with cuda.stream(cuda.Stream()):
        assert compiled(x).tolist() == (x * 3).exp().tolist()
    assert standin.calls("cuGraphLaunch") == launched
    x.mul_(0.5)
    graph.replay()
    assert made.tolist() == (x * 3).exp().tolist()
