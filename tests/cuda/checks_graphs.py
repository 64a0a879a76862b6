"""Captured graphs: capture and replay, memory, random numbers, errors, functions and programs as
graphs. Oracles are the same calls without a graph."""

import gc

import pytest
import torch

import lamella
from lamella import hlo, nn


def counts(standin, *functions):
    return [standin.calls(function) for function in functions]


def captured(cuda, fn, **options):
    """A graph of fn() and what it returned."""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **options):
        made = fn()
    return graph, made


@pytest.fixture
def side(cuda):
    stream = cuda.Stream()
    with cuda.stream(stream):
        yield stream


# ---- Capture and replay --------------------------------------------------------------------------


def test_a_replay_is_one_launch(cuda, standin):
    x, w = lamella.arange(8.0).cuda(), lamella.randn(8, 8).cuda()
    eager = (x @ w).relu() + 1
    cuda.synchronize()
    standin.standin_reset_calls()
    graph, y = captured(cuda, lambda: (x @ w).relu() + 1)
    assert counts(standin, "cuGraphInstantiateWithFlags", "cuGraphDestroy", "work") == [1, 1, 0]
    for factor in (1, 2, 3):
        x.mul_(factor)
        cuda.synchronize()
        standin.standin_reset_calls()
        graph.replay()
        names = ("cuGraphLaunch", "cuLaunchKernel", "cuMemAlloc_v2", "cuStreamSynchronize", "work")
        cuda.synchronize()
        assert counts(standin, *names) == [1, 0, 0, 0, 1]
        assert y.tolist() == ((x @ w).relu() + 1).tolist()
    assert eager.shape == y.shape


def test_capture_by_calls(cuda, side):
    assert not cuda.is_current_stream_capturing()
    x, graph = lamella.ones(4, device="cuda"), cuda.CUDAGraph()
    graph.capture_begin()
    assert cuda.is_current_stream_capturing()
    y = x + 1
    graph.capture_end()
    assert not cuda.is_current_stream_capturing()
    graph.replay()
    assert y.tolist() == [2.0] * 4
    graph.reset()
    graph.capture_begin(capture_error_mode="relaxed")
    z = x * 5
    graph.capture_end()
    graph.replay()
    assert z.tolist() == [5.0] * 4


def test_other_streams_join(cuda):
    x, other = lamella.arange(6.0).cuda(), cuda.Stream()

    def fn():
        y = x * 2
        other.wait_stream(cuda.current_stream())
        with cuda.stream(other):
            assert cuda.is_current_stream_capturing()
            z = y + 1
        cuda.current_stream().wait_stream(other)
        return z * y

    graph, made = captured(cuda, fn)
    x.add_(1)
    graph.replay()
    assert made.tolist() == ((x * 2 + 1) * (x * 2)).tolist()


def test_copies(cuda):
    pinned, host = lamella.arange(4.0).pin_memory(), lamella.zeros(4).pin_memory()
    x = lamella.zeros(4, device="cuda")

    def fn():
        x.copy_(pinned, non_blocking=True)
        y = x.clone().add_(1)
        host.copy_(y, non_blocking=True)

    graph, _ = captured(cuda, fn)
    pinned.add_(10)
    graph.replay()
    cuda.synchronize()
    assert host.tolist() == [11.0, 12.0, 13.0, 14.0]


def test_a_training_step(cuda):
    """Forward, backward and the step of an optimizer, whose results are those without a graph."""
    losses = []
    for graphed in (False, True):
        lamella.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).cuda()
        optimizer = lamella.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = lamella.randn(4, 8).cuda(), lamella.randn(4, 2).cuda()

        def step(model=model, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        with cuda.stream(cuda.Stream()):
            for _ in range(2):
                step()
        cuda.synchronize()
        if graphed:
            graph, loss = captured(cuda, step)
            losses.append([(graph.replay(), loss.item())[1] for _ in range(5)])
        else:
            losses.append([step().item() for _ in range(5)])
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]


# ---- Memory --------------------------------------------------------------------------------------


def test_memory_of_a_graph(cuda):
    """What was freed inside a capture serves it alone, while the graph lives."""
    x = lamella.zeros(1 << 20, device="cuda")
    before = cuda.memory_reserved()
    graph, made = captured(cuda, lambda: ((x + 1) * 2).sum())
    taken = cuda.memory_reserved() - before
    assert taken > 0
    with cuda.stream(cuda.graph._streams[0]):  # the stream of the capture, after it
        others = [lamella.full((1 << 20,), 7.0, device="cuda") for _ in range(4)]
    graph.replay()
    assert made.item() == 2 << 20
    assert all(bool((one == 7).all()) for one in others)
    del others
    cuda.empty_cache()
    assert cuda.memory_reserved() == before + taken
    del made
    graph.reset()
    cuda.empty_cache()
    assert cuda.memory_reserved() == before


def test_pools_are_shared(cuda):
    x = lamella.zeros(1 << 20, device="cuda")
    pool = cuda.graph_pool_handle()
    assert pool != cuda.graph_pool_handle()
    first, _ = captured(cuda, lambda: (x + 1).sum(), pool=pool)
    reserved = cuda.memory_reserved()
    second, made = captured(cuda, lambda: (x + 2).sum(), pool=first.pool())
    assert first.pool() == second.pool() == pool
    assert cuda.memory_reserved() == reserved  # the first one's memory serves the second
    first.replay()
    second.replay()
    assert made.item() == 2 << 20
    del first
    gc.collect()
    second.replay()
    assert made.item() == 2 << 20


def test_memory_of_other_streams_is_freed_after_the_capture(cuda, standin):
    x, other = lamella.ones(1 << 18, device="cuda"), cuda.Stream()
    x.record_stream(other)
    graph = cuda.CUDAGraph()
    y = lamella.ones(4, device="cuda")
    with cuda.graph(graph):
        del x  # no event may be recorded or asked for now
        assert standin.calls("cuEventRecord") == 0
        z = y + 1
    allocated = cuda.memory_stats()["active_bytes.all.current"]
    other.synchronize()
    lamella.ones(4, device="cuda")
    cuda.synchronize()
    lamella.ones(4, device="cuda")
    assert cuda.memory_stats()["active_bytes.all.current"] <= allocated - (4 << 18)
    graph.replay()
    assert z.tolist() == [2.0] * 4


# ---- Random numbers ------------------------------------------------------------------------------


def test_replays_draw_on(cuda):
    """Replays and calls draw from one stream of numbers, and a seed holds for both."""
    draws = {
        "rand": lambda: lamella.rand(5, device="cuda"),
        "randint": lambda: lamella.randint(0, 100, (7,), device="cuda"),
        "dropout": lambda: nn.functional.dropout(lamella.ones(9, device="cuda"), 0.5),
        "bernoulli": lambda: lamella.full((5,), 0.5, device="cuda").bernoulli(),
        "randn and rand": lambda: lamella.randn(4, device="cuda", dtype=lamella.float64)
        + lamella.rand(4, device="cuda"),
    }
    for name, draw in draws.items():
        cuda.manual_seed(11)
        expected = [draw().tolist() for _ in range(4)]
        cuda.manual_seed(5)
        graph, made = captured(cuda, draw)
        assert int(cuda.get_rng_state().view(lamella.int64)[1]) == 0, name  # nothing was drawn
        cuda.manual_seed(11)
        got = [(graph.replay(), made.tolist())[1] for _ in range(2)]
        got += [draw().tolist(), (graph.replay(), made.tolist())[1]]
        assert got == expected, name


def test_a_generator_of_ones_own(cuda):
    generator = lamella.Generator("cuda").manual_seed(4)
    expected = [lamella.rand(3, device="cuda", generator=generator).tolist() for _ in range(2)]
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        made = lamella.rand(3, device="cuda", generator=generator)
    generator.manual_seed(4)
    assert [(graph.replay(), made.tolist())[1] for _ in range(2)] == expected


# ---- Errors --------------------------------------------------------------------------------------

WAITS = (
    "expected work that waits for nothing while a stream of cuda:0 is captured, got a wait for it"
)


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (lambda x: x.sum().item(), f"item: {WAITS}"),
        (lambda x: float(x[0]), f"item: {WAITS}"),
        (lambda x: x.nonzero(), f"nonzero: {WAITS}"),
        (lambda x: x[x > 1], f"index: {WAITS}"),
        (lambda x: x.cpu(), f"to: {WAITS}"),
        (lambda x: lamella.ones(3).cuda(), f"to: {WAITS}"),
        (lambda x: x.copy_(lamella.ones(4)), f"copy_: {WAITS}"),
        (lambda x: lamella.equal(x, x), f"equal: {WAITS}"),
        (lambda x: lamella.cuda.synchronize(), f"synchronize: {WAITS}"),
        (lambda x: lamella.cuda.current_stream().synchronize(), f"synchronize: {WAITS}"),
        (
            lambda x: x.polygamma(2),
            "polygamma: expected an operator with a kernel of CUDA while its stream is captured, "
            "got one that runs on the CPU",
        ),
        (
            lambda x: lamella.cuda.empty_cache(),
            "empty_cache: expected no stream that is captured, got one",
        ),
        (
            lambda x: lamella.cuda.CUDAGraph().capture_begin(),
            "capture_begin: expected a device without a capture under way, got cuda:0, which has "
            "one",
        ),
    ],
)
def test_what_cannot_be_captured(cuda, fn, text):
    """The error names the operator, the capture ends, and the device is as before."""
    x = lamella.arange(4.0).cuda()
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError) as caught, cuda.graph(graph):
        fn(x)
    assert str(caught.value) == text
    assert not cuda.is_current_stream_capturing()
    assert cuda.current_stream() == cuda.default_stream()
    with cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_wrong_uses(cuda, side):
    for call, text in [
        ("replay", "replay: expected a graph that was captured, got one without a capture"),
        ("capture_end", "capture_end: expected a capture that was begun, got none"),
        ("pool", "pool: expected a graph that captures or has captured, got another"),
    ]:
        with pytest.raises(RuntimeError) as caught:
            getattr(cuda.CUDAGraph(), call)()
        assert str(caught.value) == text
    graph = cuda.CUDAGraph()
    with pytest.raises(ValueError) as wrong:
        graph.capture_begin(capture_error_mode="local")
    assert str(wrong.value) == (
        "capture_begin: expected 'capture_error_mode' to be 'global', 'thread_local' or 'relaxed', "
        "got 'local'"
    )
    with cuda.stream(cuda.default_stream()), pytest.raises(RuntimeError) as caught:
        graph.capture_begin()
    assert str(caught.value) == (
        "capture_begin: expected a current stream other than the default one, got the default "
        "stream of cuda:0"
    )
    graph.capture_begin()
    for call, text in [
        (
            "replay",
            "replay: expected a graph that was captured, got one whose capture is under way",
        ),
        ("reset", "reset: expected no capture under way, got one"),
    ]:
        with pytest.raises(RuntimeError) as caught:
            getattr(graph, call)()
        assert str(caught.value) == text
    with cuda.stream(cuda.Stream()), pytest.raises(RuntimeError) as caught:
        graph.capture_end()
    assert str(caught.value) == (
        "capture_end: expected the current stream to be that of capture_begin, got another"
    )
    with pytest.warns(UserWarning, match="capture_end: the graph is empty"):
        graph.capture_end()
    with pytest.raises(RuntimeError) as caught:
        graph.capture_begin()
    assert str(caught.value) == (
        "capture_begin: expected a graph without a capture, got one that has captured; reset() "
        "frees it"
    )


def test_streams_that_do_not_come_back(cuda, side):
    x, graph, other = lamella.ones(2, device="cuda"), cuda.CUDAGraph(), cuda.Stream()
    cuda.synchronize()
    graph.capture_begin()
    other.wait_stream(side)
    with cuda.stream(other):
        x + 1
    with pytest.raises(RuntimeError, match=r"capturing stream has unjoined work \(904\)"):
        graph.capture_end()
    assert (x + 1).tolist() == [2.0, 2.0]


def test_indices_of_a_replay_are_checked(cuda):
    x, i = lamella.arange(5.0).cuda(), lamella.tensor([0, 4]).cuda()
    graph, made = captured(cuda, lambda: x[i])
    graph.replay()
    assert made.tolist() == [0.0, 4.0]
    for _ in range(2):
        i.fill_(7)
        graph.replay()
        with pytest.raises(
            IndexError, match=r"cuda:0: index: expected 'index' in \[-5, 4\], got 7"
        ):
            cuda.synchronize()
        i.fill_(1)
        graph.replay()
        assert made.tolist() == [1.0, 1.0]


# ---- Functions as graphs -------------------------------------------------------------------------


def test_graphed_callables(cuda, standin):
    lamella.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3)).cuda()
    plain = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3)).cuda()
    plain.load_state_dict(model.state_dict())
    sample = lamella.randn(4, 8, device="cuda", requires_grad=True)
    graphed = cuda.make_graphed_callables(model, (sample,))
    assert graphed is model
    for seed in range(3):
        lamella.manual_seed(seed)
        results = []
        for one in (graphed, plain):
            x = lamella.randn(4, 8, generator=lamella.Generator().manual_seed(seed)).cuda()
            x.requires_grad_()
            one.zero_grad()
            out = one(x)
            out.square().sum().backward()
            results.append([out.detach().clone(), x.grad, *(p.grad for p in one.parameters())])
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(torch.from_dlpack(a.cpu()), torch.from_dlpack(b.cpu()))
    model.eval()  # the graph was captured in training
    standin.standin_reset_calls()
    model(sample.detach())
    assert counts(standin, "cuGraphLaunch") == [0]


def test_several_graphed_callables(cuda):
    x, y = lamella.randn(3, device="cuda"), lamella.randn(3, device="cuda")
    double, add = cuda.make_graphed_callables(
        (lambda a: a * 2, lambda a, b: {"sum": a + b}), ((x,), (x, y))
    )
    a, b = lamella.randn(3, device="cuda"), lamella.randn(3, device="cuda")
    assert add(double(a), b)["sum"].tolist() == (a * 2 + b).tolist()
    with pytest.raises(RuntimeError, match="make_graphed_callables: expected tensors like the"):
        double(lamella.ones(4, device="cuda"))
    with pytest.raises(ValueError) as caught:
        cuda.make_graphed_callables(lambda a: a, (lamella.ones(3),))
    assert str(caught.value) == (
        "make_graphed_callables: expected 'sample_args' to be on cuda, got a tensor on cpu"
    )


# ---- Programs as graphs --------------------------------------------------------------------------

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
