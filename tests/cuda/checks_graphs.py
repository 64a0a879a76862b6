"""Captured graphs: capture and replay, memory, random numbers, errors, functions as graphs. Oracles
are the same calls without a graph."""

import gc
import threading

import pytest
import torch

import lamella
from lamella import nn


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


def test_two_devices(cuda):
    """Captures of two devices at a time, and a replay while the other device is current."""
    xs = [lamella.full((3,), 1.0 + i, device=f"cuda:{i}") for i in range(2)]
    streams, graphs = [cuda.Stream(i) for i in range(2)], [cuda.CUDAGraph() for _ in range(2)]
    for i in range(2):
        cuda.synchronize(i)
    with cuda.stream(streams[0]):
        graphs[0].capture_begin()
        with cuda.stream(streams[1]):
            graphs[1].capture_begin()
            second = xs[1] * 3
            graphs[1].capture_end()
        first = xs[0] * 3
        graphs[0].capture_end()
    for x, graph in zip(xs, graphs, strict=True):
        x.add_(1)
        graph.replay()
    assert first.tolist() == [6.0] * 3 and second.tolist() == [9.0] * 3
    assert cuda.current_device() == 0 and second.device.index == 1


def test_other_threads_work_on(cuda, side):
    """On streams that are not captured, with memory that is none of the graph's."""
    x, graph, made = lamella.ones(3, device="cuda"), cuda.CUDAGraph(), []
    cuda.synchronize()

    def work():
        y = lamella.ones(1 << 18, device="cuda")
        for _ in range(5):
            y = y * 2
        made.append(y.sum().item())

    graph.capture_begin(capture_error_mode="thread_local")
    z = x + 1
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    z = z * 2
    graph.capture_end()
    graph.replay()
    assert made == [32.0 * (1 << 18)] and z.tolist() == [4.0] * 3


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


def test_graphs_inside_graphs(cuda):
    x = lamella.ones(3, device="cuda")
    inner, y = captured(cuda, lambda: x + 1)
    outer, z = captured(cuda, lambda: (inner.replay(), y * 2)[1])
    x.fill_(4)
    outer.replay()
    assert z.tolist() == [10.0] * 3
    drawing, _ = captured(cuda, lambda: lamella.rand(3, device="cuda"))
    with pytest.raises(RuntimeError) as caught:
        captured(cuda, drawing.replay)
    assert str(caught.value) == (
        "replay: expected a graph that draws no random numbers inside a capture, got one that does"
    )


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
        (lambda x: x.copy_(lamella.ones(4), non_blocking=True), f"copy_: {WAITS}"),
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


def test_graphed_callables_with_unused_parts(cuda):
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 3), nn.Linear(4, 2), nn.Linear(2, 2)

        def forward(self, x):
            return {"a": self.a(x), "b": (self.b(x), 5, None)}

    x = lamella.randn(2, 4, device="cuda")
    with pytest.raises(RuntimeError, match="pass allow_unused=True"):
        cuda.make_graphed_callables(Parts().cuda(), (x,))
    model = cuda.make_graphed_callables(Parts().cuda(), (x,), allow_unused_input=True)
    made = model(x)
    assert made["b"][1:] == (5, None)
    made["a"].sum().backward()
    assert model.c.weight.grad is None and model.b.weight.grad.abs().sum().item() == 0
    assert model.a.bias.grad.tolist() == [2.0] * 3
    with lamella.autocast("cuda"), pytest.raises(RuntimeError) as caught:
        cuda.make_graphed_callables(nn.Linear(4, 2).cuda(), (x,))
    assert str(caught.value) == (
        "make_graphed_callables: expected autocast without its cache, got one with it: use "
        "cache_enabled=False"
    )


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
