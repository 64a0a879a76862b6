"""`torch.cuda` of lamella.compat with a device."""

import pytest

import lamella
from lamella import compat

torch = compat.install()


def test_names_are_those_of_lamella_cuda():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.cuda.Stream is lamella.cuda.Stream and torch.cuda.current_device() == 0
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.memory_allocated() == 0
    assert not torch.cuda.is_current_stream_capturing() and torch.xpu.device_count() == 0
    assert "memory_stats" in dir(torch.cuda)
    with pytest.raises(AttributeError, match="no_such_name"):
        torch.cuda.no_such_name()


def test_a_program_for_devices():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    x = torch.ones(3, 4).pin_memory().cuda(non_blocking=True)
    before = model.weight.clone()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.is_enabled() and not model.weight.equal(before) and model.weight.is_cuda
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = model(x)
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and y.cpu().shape == (3, 2)
    torch.cuda.empty_cache()


def test_captured_graphs():
    import torch.cuda.graphs

    assert torch.cuda.graphs.CUDAGraph is torch.cuda.CUDAGraph is lamella.cuda.CUDAGraph
    model, x = torch.nn.Linear(3, 2).cuda(), torch.ones(1, 3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
        y = model(x)
    compiled = torch.compile(model, mode="reduce-overhead")
    for factor in (1.0, 2.0, 3.0, 4.0):
        x.fill_(factor)
        graph.replay()
        with torch.no_grad():
            assert y.tolist() == model(x).tolist() == compiled(x).tolist()
