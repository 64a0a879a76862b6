"""The checks of a backend's parts. Each is a function of the device that raises AssertionError, or
another error, if something is wrong, and Missing if the backend lacks what it checks.
"""

from __future__ import annotations

import dataclasses
import pickle
import threading
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C
from lamella.conformance._missing import Missing


@dataclasses.dataclass
class Check:
    name: str
    run: Callable[[Any], None]
    part: str = ""  # the optional part of a backend that it belongs to


CHECKS: list[Check] = []


def check(name: str, part: str = "") -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def add(function: Callable[[Any], None]) -> Callable[[Any], None]:
        CHECKS.append(Check(name, function, part))
        return function

    return add


def same(got: Any, expected: Any, what: str = "result", exact: bool = True) -> None:
    """Raises if the values, shape or dtype of a tensor differ from those of a CPU tensor."""
    if isinstance(expected, lamella.Tensor):
        assert isinstance(got, lamella.Tensor), f"{what}: expected a tensor, got {got!r}"
        assert (
            got.shape == expected.shape
        ), f"{what}: expected shape {list(expected.shape)}, got {list(got.shape)}"
        assert got.dtype == expected.dtype, f"{what}: expected {expected.dtype}, got {got.dtype}"
        mine = got.detach().cpu()
        theirs = expected.detach()
        if exact and not theirs.is_floating_point() and not theirs.is_complex():
            close = bool(lamella.equal(mine, theirs))
        else:
            close = bool(lamella.allclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True))
        assert close, f"{what}: expected {_short(theirs)}, got {_short(mine)}"
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), f"{what}: expected {len(expected)}, got {len(got)}"
        for i, (mine, theirs) in enumerate(zip(got, expected)):
            same(mine, theirs, f"{what} {i}", exact)
    else:
        assert got == expected, f"{what}: expected {expected!r}, got {got!r}"


def _short(tensor: Any) -> str:
    return str(tensor.flatten()[:8].tolist())


def raises(what: str, function: Callable[[], Any]) -> str:
    """Returns the text of the error that a call raises; AssertionError if it raises none."""
    try:
        function()
    except Exception as error:
        return str(error)
    raise AssertionError(f"{what}: expected an error, got none")


def _numbers(*shape: int, dtype: Any = None) -> Any:
    count = 1
    for size in shape:
        count *= size
    made = lamella.arange(count).reshape(shape)
    return made.to(dtype or lamella.float32)


# ---- Memory and devices --------------------------------------------------------------------------


@check("allocator")
def _(device: Any) -> None:
    try:
        one = lamella.empty(3, device=device)
    except NotImplementedError as error:
        raise Missing(str(error)) from None
    other = lamella.empty(3, device=device)
    assert one.data_ptr() != 0, "expected an address, got none"
    assert one.data_ptr() != other.data_ptr(), "two tensors are at one address"
    assert one.data_ptr() % 16 == 0, f"expected an address aligned to 16, got {one.data_ptr()}"


@check("allocator: empty tensors")
def _(device: Any) -> None:
    assert lamella.empty(0, device=device).numel() == 0


@check("allocator: reuse")
def _(device: Any) -> None:
    for _ in range(200):  # 12 GiB in all
        lamella.empty(1 << 24, device=device)


@check("allocator: too much")
def _(device: Any) -> None:
    raises("empty of 2^55 bytes", lambda: lamella.empty(1 << 53, device=device))


@check("guard: count and current device")
def _(device: Any) -> None:
    count = _C._device_count(device)
    assert count >= 1, f"expected at least one device, got {count}"
    current = _C._current_device(device)
    assert 0 <= current < count, f"expected a current device from 0 to {count - 1}, got {current}"
    made = lamella.empty(1, device=device)
    assert made.device.index == current, f"empty: expected {device}:{current}, got {made.device}"


@check("guard: exchange")
def _(device: Any) -> None:
    count = _C._device_count(device)
    for index in range(count):
        former = _C._exchange_device(lamella.device(device.type, index))
        try:
            now = _C._current_device(device)
            assert now == index, f"expected {index} to be current, got {now}"
            made = lamella.empty(1, device=device.type)
            assert made.device.index == index, f"empty: expected index {index}, got {made.device}"
        finally:
            _C._exchange_device(lamella.device(device.type, former))
        assert _C._current_device(device) == former, "the former device was not restored"


@check("guard: wrong index")
def _(device: Any) -> None:
    wrong = lamella.device(device.type, 127)
    raises(f"a tensor on {wrong}", lambda: lamella.empty(1, device=wrong))


@check("guard: threads")
def _(device: Any) -> None:
    count = _C._device_count(device)
    if count < 2:
        return
    seen = []
    _C._exchange_device(lamella.device(device.type, 1))
    thread = threading.Thread(target=lambda: seen.append(_C._current_device(device)))
    thread.start()
    thread.join()
    _C._exchange_device(lamella.device(device.type, 0))
    assert seen == [0], f"expected another thread's current device to be 0, got {seen[0]}"


# ---- Copies --------------------------------------------------------------------------------------


@check("copy: host to device and back")
def _(device: Any) -> None:
    for dtype in (lamella.float32, lamella.int64, lamella.bool, lamella.complex64):
        x = _numbers(3, 5, dtype=dtype)
        try:
            there = x.to(device)
        except NotImplementedError as error:
            raise Missing(str(error)) from None
        assert there.device.type == device.type, f"expected {device}, got {there.device}"
        same(there, x, str(dtype))


@check("copy: large")
def _(device: Any) -> None:
    x = lamella.arange(1 << 20)
    same(x.to(device), x)


@check("copy: on the device")
def _(device: Any) -> None:
    x = _numbers(4, 6)
    there = x.to(device)
    copied = there.clone()
    assert copied.data_ptr() != there.data_ptr(), "clone: expected new memory"
    same(copied, x)


@check("copy: strides")
def _(device: Any) -> None:
    x = _numbers(4, 6)
    same(x.t().to(device), x.t(), "from a transposed tensor")
    same(x.to(device).t().contiguous(), x.t().contiguous(), "on the device")
    target = lamella.zeros(4, 6).to(device)
    target[:, ::2].copy_(x[:, ::2])
    expected = lamella.zeros(4, 6)
    expected[:, ::2].copy_(x[:, ::2])
    same(target, expected, "into every other column")


@check("copy: dtypes")
def _(device: Any) -> None:
    x = _numbers(7)
    same(x.to(device, lamella.float64), x.to(lamella.float64), "to a wider dtype")
    same(x.to(device).to(lamella.int32), x.to(lamella.int32), "on the device")
    back = lamella.zeros(7, dtype=lamella.int64)
    back.copy_(x.to(device))
    same(back, x.to(lamella.int64), "to the host")


@check("copy: between devices")
def _(device: Any) -> None:
    if _C._device_count(device) < 2:
        return
    x = _numbers(3, 4)
    first = x.to(lamella.device(device.type, 0))
    second = first.to(lamella.device(device.type, 1))
    assert second.device.index == 1, f"expected index 1, got {second.device}"
    same(second, x)
    first.zero_()
    same(second, x, "after the source was written")


@check("copy: non-blocking")
def _(device: Any) -> None:
    x = _numbers(1000)
    there = x.to(device, non_blocking=True)
    x.zero_()
    same(there, _numbers(1000), "after the source was written")


@check("copy: resize_ keeps elements")
def _(device: Any) -> None:
    x = _numbers(4).to(device)
    x.resize_(1000)
    same(x[:4], _numbers(4))


@check("factories")
def _(device: Any) -> None:
    for name, args in [
        ("zeros", (2, 3)),
        ("ones", (2, 3)),
        ("full", ((2, 2), 7.5)),
        ("arange", (5,)),
        ("linspace", (0, 1, 5)),
        ("eye", (3,)),
        ("tril_indices", (3, 3)),
        ("tensor", ([1.5, 2.5],)),
        ("scalar_tensor", (3.5,)),
    ]:
        function = getattr(lamella, name)
        made = function(*args, device=device)
        assert made.device.type == device.type, f"{name}: expected {device}, got {made.device}"
        same(made, function(*args), name)
    x = lamella.empty_strided((2, 3), (1, 2), device=device)
    assert x.stride() == (1, 2), f"empty_strided: expected strides (1, 2), got {x.stride()}"
    y = _numbers(2, 2).to(device)
    same(lamella.zeros_like(y), lamella.zeros(2, 2), "zeros_like")
    same(y.new_full((2,), 3.0), lamella.full((2,), 3.0), "new_full")


@check("views")
def _(device: Any) -> None:
    x = _numbers(4, 6)
    there = x.to(device)
    start = there.data_ptr()
    for what, view in [
        ("view", there.view(6, 4)),
        ("t", there.t()),
        ("select", there[1]),
        ("slice", there[:, 2:4]),
        ("as_strided", there.as_strided((2, 2), (1, 6), 3)),
        ("expand", there[:, :1].expand(4, 6)),
        ("view of another dtype", there.view(lamella.int32)),
    ]:
        inside = start <= view.data_ptr() < start + 4 * there.numel()
        assert inside, f"{what}: expected a view of the device's memory, got a copy"
    there[:, 2:4].fill_(9)
    x[:, 2:4].fill_(9)
    same(there, x, "after a write through a view")
    there.t()[0].mul_(2)
    x.t()[0].mul_(2)
    same(there, x, "after a write through a transposed view")


@check("item, printing and pickling")
def _(device: Any) -> None:
    x = _numbers(3).to(device)
    assert x[1].item() == 1.0, f"item: expected 1.0, got {x[1].item()}"
    assert x.tolist() == [0.0, 1.0, 2.0], f"tolist: expected [0.0, 1.0, 2.0], got {x.tolist()}"
    text = repr(x)
    assert f"device='{x.device}'" in text, f"repr: expected the device in it, got {text}"
    again = pickle.loads(pickle.dumps(x))
    assert again.device == x.device, f"pickle: expected {x.device}, got {again.device}"
    same(again, _numbers(3))


@check("mixed devices")
def _(device: Any) -> None:
    x = _numbers(3)
    there = x.to(device)
    for what, call in [
        ("add", lambda: there + x),
        ("mul", lambda: x * there),
        ("cat", lambda: lamella.cat([there, x])),
        ("mm", lambda: there.reshape(1, 3) @ x.reshape(3, 1)),
    ]:
        raises(f"{what} of tensors on {device} and cpu", call)
    same(there + lamella.tensor(2.0), x + 2, "with a CPU tensor without dimensions")


# ---- Streams, events, generators -----------------------------------------------------------------


def _stream(device: Any) -> Any:
    try:
        return lamella.Stream(device)
    except NotImplementedError as error:
        raise Missing(str(error)) from None


@check("streams", "streams")
def _(device: Any) -> None:
    stream = _stream(device)
    module = lamella.get_device_module(device)
    before = module.current_stream()
    with stream:
        now = module.current_stream()
        assert now == stream, f"expected {stream} to be current, got {now}"
        x = _numbers(500).to(device)
        y = x + x
    assert module.current_stream() == before, "the former stream was not restored"
    stream.synchronize()
    assert stream.query(), "query: expected a stream without work to be idle"
    same(y, _numbers(500) * 2)
    assert _stream(device) != stream, "expected two streams, got the same twice"


@check("streams: order", "streams")
def _(device: Any) -> None:
    x = _numbers(1000).to(device)
    for _step in range(20):
        x = x + 1
    same(x, _numbers(1000) + 20, "after 20 steps on one stream")
    y = x.clone()
    x.zero_()
    same(y, _numbers(1000) + 20, "a copy that was read before the source was written")


@check("events", "events")
def _(device: Any) -> None:
    try:
        start = lamella.Event(device, enable_timing=True)
        start.record()
    except NotImplementedError as error:
        raise Missing(str(error)) from None
    x = _numbers(1000).to(device)
    end = lamella.Event(device, enable_timing=True)
    end.record()
    end.synchronize()
    assert start.query() and end.query(), "query: expected both events to be done"
    assert start.elapsed_time(end) >= 0, "elapsed_time: expected at least 0"
    del x


@check("events: one stream waits for another", "events")
def _(device: Any) -> None:
    first, second = _stream(device), _stream(device)
    with first:
        x = _numbers(2000).to(device, non_blocking=True)
        for _ in range(10):
            x = x + 1
    second.wait_stream(first)
    with second:
        y = x + 0
    second.synchronize()
    same(y, _numbers(2000) + 10)


@check("synchronize")
def _(device: Any) -> None:
    x = _numbers(1000).to(device) + 1
    _C._synchronize_device(x.device)
    same(x, _numbers(1000) + 1)


@check("generator", "generator")
def _(device: Any) -> None:
    generator = lamella.Generator(device=device)
    assert generator.device.type == device.type, f"expected {device}, got {generator.device}"
    generator.manual_seed(5)
    one = lamella.rand(10, generator=generator, device=device)
    other = lamella.rand(10, generator=generator, device=device)
    generator.manual_seed(5)
    again = lamella.rand(10, generator=generator, device=device)
    same(again, one.cpu(), "after the same seed")
    assert not lamella.equal(one.cpu(), other.cpu()), "expected other numbers, got the same twice"
    assert bool(((one.cpu() >= 0) & (one.cpu() < 1)).all()), "expected numbers in [0, 1)"


# ---- Dispatch ------------------------------------------------------------------------------------


@check("operators without a kernel")
def _(device: Any) -> None:
    names = _C._operators_without_kernel(device)
    if names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise Missing(
            f"no kernel and no fallback for {len(names)} operators that the CPU has: {shown}"
        )


@check("versions and gradients of written tensors")
def _(device: Any) -> None:
    x = _numbers(4).to(device)
    before = x._version
    x.add_(1)
    assert x._version > before, "add_: expected the write to be counted"
    before = x._version
    lamella.exp(x, out=x)
    assert x._version > before, "exp with out=: expected the write to be counted"


@check("autograd")
def _(device: Any) -> None:
    def gradients(place: Any) -> list[Any]:
        w = (_numbers(3, 4) * 0.1).to(place).requires_grad_()
        b = (_numbers(4) * 0.2).to(place).requires_grad_()
        x = (_numbers(5, 3) * 0.3 - 1).to(place)
        y = lamella.tanh(x @ w + b)
        loss = (y * y).sum() + y[:, 1:3].exp().mean()
        loss.backward()
        return [w.grad, b.grad]

    same(gradients(device), gradients("cpu"), "gradient", exact=False)


@check("autograd: across devices")
def _(device: Any) -> None:
    x = _numbers(3).requires_grad_()
    (x.to(device) * 2).cpu().sum().backward()
    assert x.grad is not None and x.grad.device.type == "cpu", "expected a gradient on cpu"
    same(x.grad, lamella.full((3,), 2.0), "gradient")


@check("training")
def _(device: Any) -> None:
    def losses(place: Any) -> list[float]:
        lamella.manual_seed(0)
        model = lamella.nn.Linear(4, 2).to(place)
        optimizer = lamella.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = (_numbers(8, 4) * 0.1).to(place)
        seen = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            seen.append(round(loss.item(), 4))
        return seen

    same(losses(device), losses("cpu"), "losses")


@check("autocast", "autocast")
def _(device: Any) -> None:
    x = _numbers(3, 3).to(device)
    with lamella.autocast(device.type, dtype=lamella.bfloat16):
        y = lamella.mm(x, x)
    assert y.dtype == lamella.bfloat16, f"mm under autocast: expected bfloat16, got {y.dtype}"
    same(y.float(), (_numbers(3, 3) @ _numbers(3, 3)).bfloat16().float())


@check("vmap", "vmap")
def _(device: Any) -> None:
    x = _numbers(4, 3)

    def function(row: Any) -> Any:
        return (row * row).sum() + row.exp()[0]

    same(lamella.vmap(function)(x.to(device)), lamella.vmap(function)(x), exact=False)


@check("threads")
def _(device: Any) -> None:
    errors: list[str] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                x = lamella.full((50,), float(number)).to(device)
                same(x * 2 + 1, lamella.full((50,), 2.0 * number + 1))
        except Exception as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
