"""Runs one operator with PyTorch and with Lamella, and compares everything observable.

A test passes the operator's name and PyTorch arguments to `check`. The call is made through
torch.ops.aten and lamella.ops.aten; results and written arguments must agree in dtype, shape,
strides and values.
"""

import pytest

torch = pytest.importorskip("torch")
lamella = pytest.importorskip("lamella")

REAL = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
ALL = [torch.bool] + WHOLE + REAL + COMPLEX

TOLERANCE = {
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


def make(*shape, dtype=torch.float32, low=-4, high=4, seed=0):
    """Values that differ, in any dtype; the same ones each time."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        low = 0 if dtype == torch.uint8 else low
        return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
    if dtype.is_complex:
        parts = torch.rand((*shape, 2), generator=generator, dtype=torch.float64) * (high - low)
        return torch.view_as_complex(parts + low).to(dtype)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return values.to(dtype)


def to_lamella(value):
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            return lamella.ops.aten.empty_strided.default(
                list(value.shape), list(value.stride()), dtype=dtype_of(value.dtype), device="meta"
            )
        return lamella.from_dlpack(value)
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.memory_format):
        return getattr(lamella, str(value).rsplit(".", 1)[1])
    if isinstance(value, (list, tuple)):
        return type(value)(to_lamella(item) for item in value)
    return value


def name_of(dtype):
    """float32 for torch.float32 and lamella.float32."""
    return str(dtype).rsplit(".", 1)[1]


def dtype_of(dtype):
    return getattr(lamella, name_of(dtype))


def compare(got, expected, strides=True, what="result", tolerance=None):
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), what
        for i, (g, e) in enumerate(zip(got, expected)):
            compare(g, e, strides, f"{what} {i}", tolerance)
        return
    if not isinstance(expected, torch.Tensor):
        assert got == expected or (got != got and expected != expected), (what, got, expected)
        return
    assert tuple(got.shape) == tuple(expected.shape), (what, "shape")
    assert name_of(got.dtype) == name_of(expected.dtype), (what, "dtype")
    if strides:
        assert tuple(got.stride()) == tuple(expected.stride()), (what, "strides")
    if expected.device.type == "meta":
        assert str(got.device).startswith("meta"), (what, "device")
        return
    values = torch.from_dlpack(got)
    if tolerance is None:
        tolerance = TOLERANCE.get(expected.dtype, (0, 0))
    torch.testing.assert_close(
        values,
        expected,
        rtol=tolerance[0],
        atol=tolerance[1],
        equal_nan=True,
        msg=lambda text: f"{what}: {text}",
    )


def split_name(name):
    base, _, overload = name.partition(".")
    return base, overload or "default"


def run(module, name, args, kwargs):
    base, overload = split_name(name)
    return getattr(getattr(module.ops.aten, base), overload)(*args, **kwargs)


def clone_strided(value):
    """A copy with the same strides and offset, on memory of its own."""
    if isinstance(value, torch.Tensor) and value.device.type != "meta":
        storage = value.untyped_storage().clone()
        return torch.empty(0, dtype=value.dtype).set_(
            storage, value.storage_offset(), value.shape, value.stride()
        )
    if isinstance(value, (list, tuple)):
        return type(value)(clone_strided(item) for item in value)
    return value


def check(name, *args, strides=True, tolerance=None, meta=True, **kwargs):
    """Compares results and written arguments; returns PyTorch's results."""
    ours = [clone_strided(a) for a in args]
    our_kwargs = {k: clone_strided(v) for k, v in kwargs.items()}
    theirs = [clone_strided(a) for a in args]
    their_kwargs = {k: clone_strided(v) for k, v in kwargs.items()}
    expected = run(torch, name, theirs, their_kwargs)
    our_args = [to_lamella(a) for a in ours]
    our_kw = {k: to_lamella(v) for k, v in our_kwargs.items()}
    got = run(lamella, name, our_args, our_kw)
    if isinstance(got, tuple):
        got = list(got)
    if isinstance(expected, tuple):
        expected = list(expected)
    compare(got, expected, strides, f"{name}", tolerance)
    for mine, other in zip(our_args, theirs):
        if isinstance(other, torch.Tensor) and other.device.type != "meta":
            compare(mine, other, strides, f"{name}: argument", tolerance)
    if meta:
        check_meta(name, args, kwargs, expected, strides)
    return expected


def check_meta(name, args, kwargs, expected, strides):
    """Shapes, dtypes and strides on meta equal the CPU's."""

    def onto_meta(value):
        if isinstance(value, torch.Tensor):
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
        if isinstance(value, (list, tuple)):
            return type(value)(onto_meta(item) for item in value)
        return value

    given = []
    for value in [*args, *kwargs.values()]:
        given.extend(value if isinstance(value, (list, tuple)) else [value])
    if not any(isinstance(value, torch.Tensor) for value in given):
        return
    got = run(
        lamella,
        name,
        [to_lamella(onto_meta(a)) for a in args],
        {k: to_lamella(onto_meta(v)) for k, v in kwargs.items()},
    )
    shapes = expected if isinstance(expected, list) else [expected]
    results = list(got) if isinstance(got, (list, tuple)) else [got]
    for mine, other in zip(results, shapes):
        if isinstance(other, torch.Tensor):
            compare(mine, onto_meta(other), strides, f"{name} on meta")


def error_of(name, *args, **kwargs):
    """The text of the error that Lamella's operator raises."""
    with pytest.raises(Exception) as caught:
        keywords = {k: to_lamella(v) for k, v in kwargs.items()}
        run(lamella, name, [to_lamella(a) for a in args], keywords)
    return str(caught.value)


def same_bits(compute):
    """compute() gives a tensor, or some, with the same bits for any number of threads."""
    before, seen = lamella.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            lamella.set_num_threads(threads)
            made = compute()
            tensors = [made] if isinstance(made, lamella.Tensor) else made
            flat = [t.detach().contiguous().flatten() for t in tensors]
            seen.append([t.view(lamella.uint8).numpy().tobytes() for t in flat])
    finally:
        lamella.set_num_threads(before)
    assert all(one == seen[0] for one in seen)
