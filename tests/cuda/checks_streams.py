"""Devices, streams, events, copies and their order; DLPack."""

import pytest

import lamella


def test_devices(cuda):
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0
    assert cuda.get_device_capability() == (9, 0) and "stand-in" in cuda.get_device_name(1)
    properties = cuda.get_device_properties("cuda:1")
    assert properties.total_memory == 8 << 30 and properties.warp_size == 32
    assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(1, 1)
    with cuda.device(1):
        assert cuda.current_device() == 1
        assert lamella.empty(1, device="cuda").device == lamella.device("cuda:1")
        with cuda.device_of(lamella.ones(1, device="cuda:0")):
            assert cuda.current_device() == 0
        with cuda.device_of(lamella.ones(1)), cuda.device(-1), cuda.device(None):
            assert cuda.current_device() == 1
    cuda.set_device("cuda:1")
    assert lamella.ones(2).cuda().device.index == 1 and lamella.ones(2).cuda(0).device.index == 0
    cuda.set_device(0)
    with pytest.raises(RuntimeError, match="expected a device of cuda from 0 to 1, got 7"):
        cuda.get_device_name(7)
    with pytest.raises(ValueError, match="set_device: expected a device of type cuda, got cpu"):
        cuda.set_device("cpu")
    with pytest.raises(RuntimeError, match="expected a device of cuda from 0 to 1, got 2"):
        lamella.ones(2, device="cuda:2")


def test_names_of_types():
    x = lamella.ones(2, device="cuda")
    assert x.is_cuda and not x.cpu().is_cuda and x.device.type == "cuda"
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"
    assert x.to("cuda") is x and x.to("cuda:0") is x and x.cuda() is x
    assert x.to(lamella.device("cuda", 1)).device.index == 1


def test_streams(cuda):
    side, other = cuda.Stream(), cuda.Stream(priority=-1)
    assert cuda.current_stream() == cuda.default_stream() != side != other
    assert side.cuda_stream != 0 == cuda.default_stream().cuda_stream
    assert cuda.Stream.priority_range() == (0, -5) and other.priority == -1
    with cuda.stream(side):
        assert cuda.current_stream() == side
        with cuda.stream(None):
            assert cuda.current_stream() == side
    assert cuda.current_stream() == cuda.default_stream()
    known = cuda.ExternalStream(side.cuda_stream)
    assert known == side
    on_other_device = cuda.Stream("cuda:1")
    with cuda.stream(on_other_device):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    cuda.set_stream(side)
    assert cuda.current_stream() == side
    cuda.set_stream(cuda.default_stream())
    made = {cuda.Stream().stream_id for _ in range(80)}
    assert len(made) == 32  # of a pool


def test_events(cuda):
    side = cuda.Stream()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query()
    x = lamella.zeros(1 << 16, device="cuda")
    with cuda.stream(side):
        side.wait_stream(cuda.default_stream())
        start.record()
        x.clone()
        end.record()
    end.synchronize()
    assert start.query() and end.query() and start.elapsed_time(end) >= 0
    plain = side.record_event()
    plain.wait(cuda.current_stream())
    cuda.synchronize()
    assert plain.query() and side.query()
    with pytest.raises(RuntimeError, match="expected both events to be made with enable_timing"):
        plain.elapsed_time(end)
    with pytest.raises(RuntimeError, match="expected both events to be recorded"):
        cuda.Event(enable_timing=True).elapsed_time(end)


def test_a_missing_wait_shows(cuda, standin):
    """What another stream reads without waiting is not there yet."""
    side = cuda.Stream()
    x = lamella.zeros(8).pin_memory()
    y = lamella.zeros(8, device="cuda")
    cuda.synchronize()
    ones = lamella.ones(8).pin_memory()
    standin.standin_hold(0, 1)
    y.copy_(ones, non_blocking=True)
    with cuda.stream(side):
        x.copy_(y, non_blocking=True)
        side.synchronize()
        unsynchronised = x.tolist()
    standin.standin_hold(0, 0)
    with cuda.stream(side):
        side.wait_stream(cuda.default_stream())
        x.copy_(y, non_blocking=True)
        side.synchronize()
    assert unsynchronised == [0.0] * 8 and x.tolist() == [1.0] * 8


def test_copies(cuda, standin):
    x = lamella.arange(12.0).reshape(3, 4)
    y = x.cuda()
    standin.standin_reset_calls()
    assert y.clone().equal(y) and standin.calls("cuMemcpyDtoDAsync_v2") >= 1
    there = y.to("cuda:1")
    assert there.device.index == 1 and there.cpu().equal(x)
    assert standin.calls("cuMemcpyPeerAsync") == 1
    assert there.cuda(0).cpu().equal(x) and there.t().to("cuda:0").cpu().equal(x.t())
    assert y.t().cpu().equal(x.t()) and y[:, 1].cpu().equal(x[:, 1])
    assert y.to("cpu", lamella.int64).tolist() == x.to(lamella.int64).tolist()
    z = lamella.zeros(4, 3, device="cuda")
    z.copy_(x.t())
    z[1].fill_(7)
    expected = x.t().clone()
    expected[1] = 7
    assert z.cpu().equal(expected) and y.item is not None and y[2, 3].item() == 11.0


def test_non_blocking(cuda, standin):
    x = lamella.ones(8).pin_memory()
    y = x.to("cuda", non_blocking=True)
    standin.standin_reset_calls()
    z = y.to("cpu", non_blocking=True)  # not pinned: done when it returns
    assert z.tolist() == [1.0] * 8
    to = lamella.empty(8, pin_memory=True)
    standin.standin_reset_calls()
    to.copy_(y, non_blocking=True)
    x.cuda(non_blocking=True)
    assert standin.calls("cuStreamSynchronize") == 0
    cuda.current_stream().synchronize()
    assert to.tolist() == [1.0] * 8


def test_mixed_devices():
    x = lamella.ones(3, device="cuda")
    for other in ("cpu", "cuda:1"):
        y = lamella.ones(3, device=other)
        with pytest.raises(RuntimeError) as error:
            x + y
        assert str(error.value) == f"add: expected 'other' to be on cuda:0 like 'self', got {other}"
        with pytest.raises(RuntimeError, match="special_zeta: expected .*cuda:0.* on " + other):
            lamella.special.zeta(x, y)
    assert (x + lamella.tensor(2.0)).tolist() == [3.0, 3.0, 3.0]


def test_generators(cuda):
    first = lamella.Generator("cuda").manual_seed(3)
    second = lamella.Generator("cuda").manual_seed(3)
    a = lamella.rand(5, device="cuda", generator=first)
    assert a.equal(lamella.rand(5, device="cuda", generator=second)) and a.device.type == "cuda"
    lamella.manual_seed(5)
    b = lamella.randn(4, device="cuda")
    state = cuda.get_rng_state()
    c = lamella.randn(4, device="cuda")
    cuda.set_rng_state(state)
    assert c.equal(lamella.randn(4, device="cuda")) and not b.equal(c)
    cuda.manual_seed_all(5)
    assert b.equal(lamella.randn(4, device="cuda")) and cuda.initial_seed() == 5
    assert len(cuda.get_rng_state_all()) == len(cuda.default_generators) == 2
    with pytest.raises(RuntimeError, match="Generator"):
        lamella.rand(5, generator=first)


# ---- DLPack --------------------------------------------------------------------------------------


class Foreign:
    """An array of another library, which notes the stream that it is asked for."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        with lamella.cuda.stream(lamella.cuda.default_stream(self.tensor.device)):
            return self.tensor.__dlpack__(stream=stream, **options)


def test_dlpack(cuda):
    x = lamella.arange(4.0).cuda(1)
    assert x.__dlpack_device__() == (2, 1)
    foreign = Foreign(x)
    y = lamella.from_dlpack(foreign)
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.tolist() == [0, 1, 2, 3]
    assert foreign.streams == [1]  # the default stream
    side = cuda.Stream(1)
    with cuda.stream(side):
        lamella.from_dlpack(foreign)
    assert foreign.streams[1] == side.cuda_stream
    assert lamella.from_dlpack(x.__dlpack__(stream=-1)).equal(x)
    with pytest.raises(BufferError, match="expected 'stream' to be"):
        x.__dlpack__(stream=0)


def test_dlpack_waits_for_the_producer(cuda):
    """The consumer's stream goes on when the producer's work is done."""
    side = cuda.Stream()
    x = lamella.zeros(8, device="cuda")
    ones = lamella.ones(8).pin_memory()
    cuda.synchronize()
    for _ in range(20):
        x.copy_(ones, non_blocking=True)
    with cuda.stream(side):
        y = lamella.from_dlpack(Foreign(x))
        got = lamella.empty(8, pin_memory=True)
        got.copy_(y, non_blocking=True)
        side.synchronize()
    assert got.tolist() == [1.0] * 8
